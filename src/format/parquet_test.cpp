// SPDX-License-Identifier: Apache-2.0
#include "format/parquet.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "format/collecting_sink.h"
#include "format/parquet_encoding.h"
#include "format/thrift.h"
#include "os/fake_file_system.h"

namespace stoker {
namespace {

using namespace std::string_literals;

TEST(RunReader, RunsAndPackedGroups) {
  // A run of five 2s, then eight values of three bits: 0 … 7, as the format's description has them.
  const std::string bytes = "\x0a\x02\x03\x88\xc6\xfa"s;
  RunReader reader(as_bytes(bytes), 3);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(reader.next(), 2U);
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(reader.next(), i);
  EXPECT_THROW(reader.next(), Error);
}

TEST(RunReader, NoWidthNeedsNoBytes) {
  RunReader reader({}, 0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(reader.next(), 0U);
}

TEST(DeltaReader, DeltasOfOne) {
  // 128 per block in 4 parts, five values, the first is 1, each one more than the one before.
  const std::string bytes = "\x80\x01\x04\x05\x02\x02\0\0\0\0rest"s;
  DeltaReader reader(as_bytes(bytes));
  for (int64_t i = 1; i <= 5; ++i) EXPECT_EQ(reader.next(), i);
  EXPECT_EQ(reader.left(), 0U);
  EXPECT_EQ(as_text(reader.rest()), "rest");
  EXPECT_THROW(reader.next(), Error);
}

TEST(DeltaReader, AbsurdHeadsAreRefused) {
  for (const std::string& bytes : {"\x80\x01\0\x05\x02"s, "\x81\x01\x04\x05\x02"s, "\xff"s, ""s}) {
    EXPECT_THROW(DeltaReader{as_bytes(bytes)}, Error);
  }
}

TEST(Thrift, FieldsAreReadOrPassedOver) {
  // 1: i32 -3, 2: list of two texts, 4: true, 5: struct { 1: i64 200 }
  const std::string bytes =
      "\x15\x05\x19\x28\x01"
      "a\x02"
      "bc\x21\x1c\x16\x90\x03\0\0"s;
  for (const bool look : {true, false}) {
    ThriftBytes from(as_bytes(bytes));
    ThriftStruct fields(from);
    std::string seen;
    while (fields.next()) {
      seen += std::to_string(fields.id());
      if (!look) continue;
      if (fields.id() == 1) {
        EXPECT_EQ(fields.int32(), -3);
      }
      if (fields.id() == 4) {
        EXPECT_TRUE(fields.boolean());
      }
      if (fields.id() == 5) {
        ThriftStruct inner = fields.structure();
        ASSERT_TRUE(inner.next());
        EXPECT_EQ(inner.integer(), 200);
        EXPECT_FALSE(inner.next());
      }
    }
    EXPECT_EQ(seen, "1245");
    EXPECT_EQ(from.taken(), bytes.size());
  }
  for (size_t size = 0; size < bytes.size(); ++size) {
    ThriftBytes from(as_bytes(bytes).first(size));
    EXPECT_THROW(from.skip(ThriftType::structure, 0), Error) << size;
  }
}

TEST(Thrift, DepthIsBounded) {
  const std::string deep(100'000, '\x1c');
  ThriftBytes from(as_bytes(deep));
  EXPECT_THROW(from.skip(ThriftType::structure, 0), Error);
}

TEST(Parquet, WithoutAFooterNothingIsFound) {
  for (const std::string& contents : {""s, "PAR1"s, "PAR1PAR1"s, "PAR1\xff\xff\xff\xff"s + "PAR1",
                                      "PAR1\0\0\0\0PAR1"s, "PAR1\x04\0\0\0PARE"s}) {
    FakeFileSystem files;
    files.add_file("/d/x.parquet", contents);
    const Source source{"/d", "x.parquet", "", &files};
    ASSERT_TRUE(detect_parquet(source));
    CollectingSink sink;
    scan_parquet(source, {}, {"x.parquet", Compression::none, 0, 0, {}}, sink);
    EXPECT_TRUE(sink.samples.empty());
    EXPECT_EQ(sink.faults.size(), 1U) << contents;
  }
}

}  // namespace
}  // namespace stoker
