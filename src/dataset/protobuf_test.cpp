// SPDX-License-Identifier: Apache-2.0
#include "dataset/protobuf.h"

#include <gtest/gtest.h>

#include <array>

#include "base/error.h"

namespace stoker {
namespace {

using namespace std::string_literals;

std::string error_of(const std::string& message) {
  try {
    WireReader reader(as_bytes(message));
    WireField field;
    while (reader.next(field)) {
    }
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    return error.what();
  }
  return "";
}

TEST(Varint, RoundTrip) {
  for (int shift = 0; shift < 64; ++shift) {
    for (const uint64_t value :
         {uint64_t{1} << shift, (uint64_t{1} << shift) - 1, ~uint64_t{0} << shift}) {
      std::string text = "x";
      append_varint(text, value);
      EXPECT_EQ(text.size(), 1 + varint_size(value));
      text += "rest";
      Bytes bytes = as_bytes(text).subspan(1);
      EXPECT_EQ(take_varint(bytes), value);
      EXPECT_EQ(as_text(bytes), "rest");
    }
  }
}

TEST(Varint, RefusesWhatIsNone) {
  for (const std::string& text :
       {""s, "\x80"s, std::string(9, '\x80'), std::string(10, '\x80'),
        std::string(10, '\xFF') + "\x01", std::string(9, '\xFF') + "\x02"}) {
    Bytes bytes = as_bytes(text);
    EXPECT_EQ(take_varint(bytes), std::nullopt);
    EXPECT_EQ(bytes.size(), text.size());
  }
}

TEST(Varint, TakesMoreBytesThanNeeded) {
  const std::string text = "\x85\x80\x00"s;
  Bytes bytes = as_bytes(text);
  EXPECT_EQ(take_varint(bytes), 5u);
  EXPECT_TRUE(bytes.empty());
}

TEST(WireReader, ReadsEveryType) {
  const std::string message = "\x08\x96\x01"s +
                              "\x12\x03"
                              "abc"s +
                              "\x1D\x01\x02\x03\x04"s +
                              "\x21"
                              "12345678"s;
  WireReader reader(as_bytes(message));
  WireField field;
  ASSERT_TRUE(reader.next(field));
  EXPECT_TRUE(field.is(1, WireType::varint));
  EXPECT_EQ(field.value, 150u);
  EXPECT_TRUE(field.payload.empty());
  ASSERT_TRUE(reader.next(field));
  EXPECT_TRUE(field.is(2, WireType::bytes));
  EXPECT_EQ(as_text(field.payload), "abc");
  ASSERT_TRUE(reader.next(field));
  EXPECT_TRUE(field.is(3, WireType::fixed32));
  EXPECT_EQ(load<uint32_t>(field.payload.data()), 0x04030201u);
  ASSERT_TRUE(reader.next(field));
  EXPECT_TRUE(field.is(4, WireType::fixed64));
  EXPECT_EQ(as_text(field.payload), "12345678");
  EXPECT_FALSE(reader.next(field));
}

TEST(WireReader, SaysWhatIsWrong) {
  EXPECT_EQ(error_of("\x80"), "a protobuf field has no valid tag");
  EXPECT_EQ(error_of("\x02\x01"), "a protobuf field has no valid tag");
  EXPECT_EQ(error_of("\xFF\xFF\xFF\xFF\x7F\x01"), "a protobuf field has no valid tag");
  EXPECT_EQ(error_of("\x0B"), "protobuf field 1 has wire type 3, which is not used");
  EXPECT_EQ(error_of("\x08"), "protobuf field 1 is cut off or too long");
  EXPECT_EQ(error_of("\x0A\x05"
                     "abc"),
            "protobuf field 1 has 5 bytes, but only 3 are left");
  EXPECT_EQ(error_of("\x0D"
                     "abc"),
            "protobuf field 1 has 4 bytes, but only 3 are left");
  EXPECT_EQ(error_of("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"),
            "protobuf field 1 has 18446744073709551615 bytes, but only 0 are left");
}

TEST(WireTag, IsNumberAndType) {
  EXPECT_EQ(wire_tag(1, WireType::bytes), 0x0Au);
  EXPECT_EQ(wire_tag(3, WireType::fixed32), 0x1Du);
}

}  // namespace
}  // namespace stoker
