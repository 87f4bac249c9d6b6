// SPDX-License-Identifier: Apache-2.0
#include "dataset/schema.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"

namespace stoker {
namespace {

Field make_field(FieldType type, Encoding encoding, DType dtype = DType::unknown) {
  Field field;
  field.name = "x";
  field.type = type;
  field.encoding = encoding;
  field.dtype = dtype;
  field.present = 1;
  return field;
}

Field make_array(std::vector<int64_t> shape, DType dtype = DType::float32,
                 Encoding encoding = Encoding::npy) {
  Field field = make_field(FieldType::array, encoding, dtype);
  field.shape = std::move(shape);
  return field;
}

std::string error_of(const char* json) {
  try {
    field_from_json(parse_json(json), "x.seg");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    return error.what();
  }
  return "";
}

TEST(Schema, FindsFieldsByName) {
  Schema schema;
  schema.fields.push_back(make_field(FieldType::bytes, Encoding::raw));
  schema.fields.push_back(make_field(FieldType::text, Encoding::raw));
  schema.fields[1].name = "caption";
  EXPECT_EQ(schema.find("caption"), 1u);
  EXPECT_EQ(schema.find("x"), 0u);
  EXPECT_EQ(schema.find("nothing"), std::nullopt);
}

TEST(Schema, NamesAndSizes) {
  EXPECT_EQ(name_of(FieldType::list), "list");
  EXPECT_EQ(name_of(Encoding::tf_strings), "tf_strings");
  EXPECT_EQ(name_of(DType::bool8), "bool");
  EXPECT_EQ(name_of(DType::float64), "float64");
  EXPECT_EQ(name_of(Depth::full), "full");
  EXPECT_EQ(name_of(static_cast<DType>(200)), "?");
  EXPECT_EQ(size_of(DType::unknown), 0u);
  EXPECT_EQ(size_of(DType::float16), 2u);
  EXPECT_EQ(size_of(DType::uint64), 8u);
  EXPECT_EQ(size_of(static_cast<DType>(200)), 0u);
}

TEST(MergeField, AddsCountsAndJoinsSuffixes) {
  Field field = make_field(FieldType::bytes, Encoding::raw);
  field.suffixes = {"jpg", "png"};
  Field more = field;
  more.suffixes = {"JPEG", "png"};
  more.present = 4;
  ASSERT_TRUE(merge_field(field, more));
  EXPECT_EQ(field.suffixes, (std::vector<std::string>{"jpg", "png", "JPEG"}));
  EXPECT_EQ(field.present, 5u);
}

TEST(MergeField, DimensionsThatDifferVary) {
  Field field = make_array({3, 4, 5});
  ASSERT_TRUE(merge_field(field, make_array({3, 9, 5})));
  EXPECT_EQ(field.shape, (std::vector<int64_t>{3, -1, 5}));
  ASSERT_TRUE(merge_field(field, make_array({3, 4, 5})));
  EXPECT_EQ(field.shape, (std::vector<int64_t>{3, -1, 5}));
  ASSERT_TRUE(merge_field(field, make_array({3, 4})));
  EXPECT_EQ(field.shape, std::nullopt);
  ASSERT_TRUE(merge_field(field, make_array({3, 4})));
  EXPECT_EQ(field.shape, std::nullopt);
}

TEST(MergeField, DTypesThatDifferBecomeUnknown) {
  Field field = make_array({2}, DType::float32);
  ASSERT_TRUE(merge_field(field, make_array({2}, DType::float64)));
  EXPECT_EQ(field.dtype, DType::unknown);
  ASSERT_TRUE(merge_field(field, make_array({2}, DType::float32)));
  EXPECT_EQ(field.dtype, DType::unknown);
}

TEST(MergeField, NumberJoinsArray) {
  Field field = make_field(FieldType::number, Encoding::tf_int64s, DType::int64);
  ASSERT_TRUE(merge_field(field, make_array({1}, DType::int64, Encoding::tf_int64s)));
  EXPECT_EQ(field.type, FieldType::array);
  EXPECT_EQ(field.dtype, DType::int64);
  EXPECT_EQ(field.shape, (std::vector<int64_t>{1}));
  ASSERT_TRUE(merge_field(field, make_array({7}, DType::int64, Encoding::tf_int64s)));
  EXPECT_EQ(field.shape, (std::vector<int64_t>{-1}));
  ASSERT_TRUE(merge_field(field, make_field(FieldType::number, Encoding::tf_int64s, DType::int64)));
  EXPECT_EQ(field.shape, (std::vector<int64_t>{-1}));

  Field npy = make_array({3});
  ASSERT_TRUE(merge_field(npy, make_field(FieldType::number, Encoding::npy, DType::float32)));
  EXPECT_EQ(npy.type, FieldType::array);
  EXPECT_EQ(npy.shape, std::nullopt);
}

TEST(MergeField, RefusesWhatCannotBeOneField) {
  const Field array = make_array({2}, DType::float32, Encoding::tf_floats);
  for (const Field& other : {make_field(FieldType::bytes, Encoding::raw),
                             make_field(FieldType::number, Encoding::tf_int64s, DType::int64),
                             make_field(FieldType::list, Encoding::tf_strings)}) {
    Field field = array;
    EXPECT_FALSE(merge_field(field, other));
    EXPECT_EQ(field, array);
  }
  Field text = make_field(FieldType::text, Encoding::raw);
  EXPECT_FALSE(merge_field(text, make_field(FieldType::bytes, Encoding::raw)));
}

TEST(FieldJson, RoundTrip) {
  Field field = make_array({-1, 3}, DType::bool8);
  field.name = "caf\xE9 100%\n";
  field.suffixes = {"caf\xE9.npy", "\xC3\xA9.npy", ""};
  field.present = ~uint64_t{0};
  const std::string text = to_json(field).dump();
  EXPECT_EQ(field_from_json(parse_json(text), "x.seg"), field);

  const Field plain = make_field(FieldType::bytes, Encoding::raw);
  EXPECT_EQ(to_json(plain).dump(), R"({"name":"x","type":"bytes","encoding":"raw","present":1})");
  EXPECT_EQ(field_from_json(to_json(plain), "x.seg"), plain);
  Field scalar = make_array({});
  EXPECT_EQ(field_from_json(to_json(scalar), "x.seg"), scalar);
}

TEST(FieldJson, SaysWhatIsWrong) {
  EXPECT_EQ(error_of("[]"), "x.seg: a field is not an object");
  EXPECT_EQ(error_of("{}"), "x.seg: a field has no \"name\"");
  EXPECT_EQ(error_of(R"({"name":"a","type":"bites","encoding":"raw","present":1})"),
            "x.seg: unknown type 'bites'");
  EXPECT_EQ(error_of(R"({"name":"a","type":"bytes","encoding":7,"present":1})"),
            "x.seg: a field has no \"encoding\"");
  EXPECT_EQ(error_of(R"({"name":"a","type":"bytes","encoding":"raw","present":-1})"),
            "x.seg: a field has no \"present\"");
  EXPECT_EQ(error_of(R"({"name":"a","type":"bytes","encoding":"raw","dtype":"i","present":1})"),
            "x.seg: unknown dtype 'i'");
  EXPECT_EQ(error_of(R"({"name":"a","type":"bytes","encoding":"raw","shape":3,"present":1})"),
            "x.seg: \"shape\" is not an array");
  for (const char* shape : {"[-2]", "[9223372036854775808]", "[1.5]", "[\"1\"]", "[null]"}) {
    EXPECT_EQ(error_of((R"({"name":"a","type":"array","encoding":"npy","present":1,"shape":)" +
                        std::string(shape) + "}")
                           .c_str()),
              "x.seg: \"shape\" holds something that is no dimension")
        << shape;
  }
  EXPECT_EQ(error_of(R"({"name":"a","type":"bytes","encoding":"raw","suffixes":[1],"present":1})"),
            "x.seg: \"suffixes\" holds something that is no text");
}

TEST(NameJson, KeepsUtf8AndEscapesTheRest) {
  EXPECT_EQ(name_to_json("\xC3\xA9t\xC3\xA9.jpg"), "\xC3\xA9t\xC3\xA9.jpg");
  EXPECT_EQ(name_to_json("100%"), "100%25");
  EXPECT_EQ(name_to_json("caf\xE9"), "caf%E9");
  EXPECT_EQ(name_to_json("\xC3\xA9\xFF"), "%C3%A9%FF");
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every.push_back(static_cast<char>(byte));
  EXPECT_EQ(name_from_json(name_to_json(every)), every);
  EXPECT_EQ(name_from_json(parse_json(Json(name_to_json(every)).dump()).get<std::string>()), every);
}

}  // namespace
}  // namespace stoker
