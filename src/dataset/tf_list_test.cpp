// SPDX-License-Identifier: Apache-2.0
#include "dataset/tf_list.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"

namespace stoker {
namespace {

using namespace std::string_literals;

template <typename T>
std::vector<T> values_of(const Array& array) {
  std::vector<T> values(array.data.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), array.data.data(), array.data.size());
  return values;
}

const std::string kOneAndHalf = "\x00\x00\x80\x3F\x00\x00\x00\x3F"s;  // 1.0F, 0.5F

TEST(TfList, ReadsPackedInt64s) {
  const std::string body = "\x0A\x0D\x05\xAC\x02" + std::string(9, '\xFF') + "\x01"s;
  const Array array = parse_int64_list(as_bytes(body));
  EXPECT_EQ(array.dtype, DType::int64);
  EXPECT_EQ(array.shape, std::vector<int64_t>{3});
  EXPECT_EQ(values_of<int64_t>(array), (std::vector<int64_t>{5, 300, -1}));
}

TEST(TfList, ReadsUnpackedAndMixedInt64s) {
  const std::string body = "\x08\x05\x0A\x02\x06\x07\x12\x01x\x08\x08"s;  // and an unknown field
  EXPECT_EQ(values_of<int64_t>(parse_int64_list(as_bytes(body))),
            (std::vector<int64_t>{5, 6, 7, 8}));
  EXPECT_EQ(parse_int64_list({}).shape, std::vector<int64_t>{0});
}

TEST(TfList, RefusesBrokenInt64s) {
  for (const std::string& body : {"\x0A\x01\x80"s, "\x0A\x02\x01"s,
                                  "\x0D"
                                  "1234"s,
                                  "\x08"s, "\x0A\x0B"s + std::string(10, '\xFF') + "\x01"s}) {
    EXPECT_THROW(parse_int64_list(as_bytes(body)), Error);
  }
}

TEST(TfList, ReadsFloats) {
  const std::string packed = "\x0A\x08"s + kOneAndHalf;
  const std::string unpacked = "\x0D"s + kOneAndHalf.substr(0, 4) + "\x0D" + kOneAndHalf.substr(4);
  const std::string mixed = "\x0A\x04"s + kOneAndHalf.substr(0, 4) + "\x0D" + kOneAndHalf.substr(4);
  for (const std::string& body : {packed, unpacked, mixed}) {
    const Array array = parse_float_list(as_bytes(body));
    EXPECT_EQ(array.dtype, DType::float32);
    EXPECT_EQ(array.shape, std::vector<int64_t>{2});
    EXPECT_EQ(values_of<float>(array), (std::vector<float>{1.0F, 0.5F}));
  }
  EXPECT_EQ(parse_float_list({}).shape, std::vector<int64_t>{0});
}

TEST(TfList, PackedFloatsAreNotCopiedWhereAligned) {
  alignas(4) std::byte memory[16];
  const std::string body = "\x0A\x08"s + kOneAndHalf;
  std::memcpy(memory + 2, body.data(), body.size());
  Array array = parse_float_list({memory + 2, body.size()});
  EXPECT_EQ(array.data.data(), memory + 4);
  EXPECT_TRUE(array.owned.empty());
  std::memmove(memory + 3, memory + 2, body.size());
  array = parse_float_list({memory + 3, body.size()});
  EXPECT_EQ(array.data.data(), array.owned.data());
  const Array moved = std::move(array);
  EXPECT_EQ(values_of<float>(moved), (std::vector<float>{1.0F, 0.5F}));
}

TEST(TfList, RefusesBrokenFloats) {
  for (const std::string& body : {"\x0A\x03"
                                  "123"s,
                                  "\x08\x01"s,
                                  "\x0D"
                                  "123"s}) {
    EXPECT_THROW(parse_float_list(as_bytes(body)), Error);
  }
}

TEST(TfList, ReadsBytes) {
  const std::string body =
      "\x0A\x03"
      "abc\x0A\x00\x12\x01?\x0A\x01\x00"s;
  const std::vector<Bytes> values = parse_bytes_list(as_bytes(body));
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(as_text(values[0]), "abc");
  EXPECT_EQ(as_text(values[1]), "");
  EXPECT_EQ(as_text(values[2]), "\0"s);
  EXPECT_THROW(parse_bytes_list(as_bytes("\x0A\x04"
                                         "abc")),
               Error);
  EXPECT_THROW(parse_bytes_list(as_bytes("\x08\x04")), Error);
}

TEST(TfList, WritesWhatItReads) {
  const int64_t integers[] = {0, 5, 300, -1, INT64_MIN};
  std::string body = write_int64_list(std::as_bytes(std::span(integers)));
  EXPECT_EQ(values_of<int64_t>(parse_int64_list(as_bytes(body))),
            std::vector<int64_t>(std::begin(integers), std::end(integers)));
  EXPECT_EQ(write_float_list(as_bytes(kOneAndHalf)), "\x0A\x08"s + kOneAndHalf);
  const Bytes values[] = {as_bytes("abc"), {}};
  EXPECT_EQ(write_bytes_list(values),
            "\x0A\x03"
            "abc\x0A\x00"s);
  EXPECT_EQ(write_int64_list({}), "");
  EXPECT_EQ(write_float_list({}), "");
}

}  // namespace
}  // namespace stoker
