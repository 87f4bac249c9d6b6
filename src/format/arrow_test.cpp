// SPDX-License-Identifier: Apache-2.0
#include "format/arrow.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "format/flat_builder.h"
#include "format/flatbuffer.h"
#include "format/hugging_face.h"
#include "os/fake_file_system.h"

namespace stoker {
namespace {

std::string small_buffer() {
  FlatBuilder inner;
  inner.number<int64_t>(0, -7);
  FlatBuilder outer;
  outer.number<uint8_t>(0, 3);
  outer.child(2, FlatBuilder::text("hello"));
  outer.number<int64_t>(3, 1LL << 40);
  std::vector<FlatBuilder> tables;
  tables.push_back(inner);
  tables.push_back(inner);
  outer.child(4, FlatBuilder::tables(std::move(tables)));
  const std::vector<int64_t> pairs = {1, 2, 3, 4};
  outer.child(5, FlatBuilder::structs(std::as_bytes(std::span(pairs)), 16));
  return outer.build();
}

TEST(Flatbuffer, WhatIsBuiltIsRead) {
  const std::string buffer = small_buffer();
  const FlatTable table = FlatTable::root(as_bytes(buffer));
  EXPECT_EQ(table.number<uint8_t>(0), 3);
  EXPECT_EQ(table.number<int32_t>(1, 42), 42);  // not there
  EXPECT_EQ(table.text(2), "hello");
  EXPECT_EQ(table.number<int64_t>(3), 1LL << 40);
  ASSERT_EQ(table.tables(4).size(), 2U);
  EXPECT_EQ(table.tables(4).table(1).number<int64_t>(0), -7);
  ASSERT_EQ(table.structs(5, 16).size(), 2U);
  EXPECT_EQ(load<int64_t>(table.structs(5, 16).element(1) + 8), 4);
  EXPECT_FALSE(table.table(9).there());
}

TEST(Flatbuffer, NoDistanceLeadsOutside) {
  const std::string whole = small_buffer();
  const auto read_all = [](const std::string& buffer) {
    try {
      const FlatTable table = FlatTable::root(as_bytes(buffer));
      (void)table.text(2);
      const FlatVector tables = table.tables(4);
      for (size_t i = 0; i < tables.size(); ++i) (void)tables.table(i).number<int64_t>(0);
      (void)table.structs(5, 16);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    }
  };
  for (size_t at = 0; at < whole.size(); ++at) {
    read_all(whole.substr(0, at));
    for (const int value : {0, 1, 0x7F, 0x80, 0xFF}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(value);
      read_all(damaged);
    }
  }
}

TEST(HuggingFace, NamesColumns) {
  const auto features = parse_hugging_face(
      R"({"info": {"features": {"img": {"_type": "Image"}, "fine": {"names": ["a", "b"], "_type": "ClassLabel"},
          "more": {"names": ["c"], "_type": "ClassLabel"}, "odd": 5}}})");
  ASSERT_EQ(features.size(), 3U);
  const std::vector<std::string_view> columns = {"more", "img", "fine"};
  const ColumnNames names = name_columns(columns, features);
  EXPECT_EQ(names.fields, (std::vector<std::string>{"label", "image", "fine"}));
  EXPECT_EQ(names.classes, std::vector<std::string>{"c"});
  // A column that is called so already stays it, whatever it is.
  const std::vector<std::string_view> named = {"img", "image", "label", "fine"};
  EXPECT_EQ(name_columns(named, features).fields,
            (std::vector<std::string>{"img", "image", "label", "fine"}));
}

TEST(HuggingFace, StatesShapes) {
  const auto features = parse_hugging_face(
      R"({"features": {
          "a": {"shape": [4, 5], "dtype": "float32", "_type": "Array2D"},
          "b": {"shape": [null, 5], "dtype": "float32", "_type": "Array2D"},
          "c": {"feature": {"feature": {"dtype": "int8", "_type": "Value"}, "length": 4, "_type": "List"}, "_type": "List"},
          "d": {"feature": {"_type": "Image"}, "_type": "List"},
          "e": {"shape": [-1, 1e30, "x", 99999999999], "_type": "Array4D"}}})");
  const std::vector<std::string_view> columns = {"e", "d", "c", "b", "a", "none"};
  const std::vector<std::vector<int64_t>> expected = {{-1, -1, -1, -1}, {},     {-1, 4},
                                                      {-1, 5},          {4, 5}, {}};
  EXPECT_EQ(name_columns(columns, features).shapes, expected);
}

TEST(HuggingFace, AnythingElseSaysNothing) {
  for (const char* json : {"", "{", "[]", "{\"info\": 3}", "{\"features\": []}"}) {
    EXPECT_TRUE(parse_hugging_face(json).empty()) << json;
  }
}

TEST(Arrow, SplitsAreRefusedByName) {
  FakeFileSystem files;
  files.add_file("/d/dataset_dict.json", R"({"splits": ["train", "test"]})");
  files.add_file("/d/train/state.json", "{}");
  try {
    detect_format({"/d", "", "", &files});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(error.what()).find("/d::train, /d::test"), std::string::npos);
  }
}

TEST(Arrow, ShardsOfASavedDatasetAreThoseListed) {
  FakeFileSystem files;
  files.add_file("/d/state.json",
                 R"({"_data_files": [{"filename": "b.arrow"}, {"filename": "a.arrow"},
                     {"filename": "../out.arrow"}]})");
  files.add_file("/d/b.arrow", "");
  files.add_file("/d/cache-1.arrow", "");
  const auto layout = detect_arrow({"/d", "", "", &files});
  ASSERT_TRUE(layout);
  ASSERT_EQ(layout->parts.size(), 1U);
  EXPECT_EQ(layout->parts[0].shard, "b.arrow");
  EXPECT_EQ(layout->faults.size(), 2U);  // one is missing, one leads out
}

}  // namespace
}  // namespace stoker
