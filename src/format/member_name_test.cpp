// SPDX-License-Identifier: Apache-2.0
#include "format/member_name.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace stoker {
namespace {

using Names = std::vector<std::string>;

std::string split(std::string_view path) {
  const auto name = split_member_name(path);
  return name ? std::string(name->key) + "|" + std::string(name->suffix) : "hidden";
}

TEST(MemberName, KeyEndsAtTheFirstDotOfTheBaseName) {
  EXPECT_EQ(split("a/b.c.jpg"), "a/b|c.jpg");
  EXPECT_EQ(split("a.d/b.jpg"), "a.d/b|jpg");
  EXPECT_EQ(split("a.d/b"), "a.d/b|");
  EXPECT_EQ(split("b."), "b|");
  EXPECT_EQ(split("b..jpg"), "b|.jpg");
}

TEST(MemberName, LeadingDotSlashIsStripped) {
  EXPECT_EQ(split("./a.jpg"), "a|jpg");
  EXPECT_EQ(split("././/a/./b.jpg"), "a/./b|jpg");
}

TEST(MemberName, BaseNameThatBeginsWithADotIsHidden) {
  for (const char* path : {".DS_Store", "a/._b.jpg", "./.x", ".", "a/.", ".a.jpg"}) {
    EXPECT_EQ(split(path), "hidden") << path;
  }
  EXPECT_EQ(split(".a/b.jpg"), ".a/b|jpg");
}

TEST(MemberName, FitKeysAreThoseThatComeBack) {
  for (const std::string key : {"a", "a/b", "a.d/b", "a b\n", "..a/b", "\xff"}) {
    EXPECT_EQ(unfit_key(key), "") << key;
    EXPECT_EQ(split(key + ".jpg"), key + "|jpg");
  }
  for (const char* key : {"", "/a", "a.b", "./a", "a/", ".a", "a/../b"}) {
    EXPECT_NE(unfit_key(key), "") << key;
  }
}

struct Case {
  const char* suffix;
  const char* name;
  FieldType type;
  Encoding encoding;
};
const Case kCases[] = {
    {"jpg", "image", FieldType::bytes, Encoding::raw},
    {"JPEG", "image", FieldType::bytes, Encoding::raw},
    {"webp", "image", FieldType::bytes, Encoding::raw},
    {"cls", "label", FieldType::number, Encoding::decimal},
    {"height.cls", "height", FieldType::number, Encoding::decimal},
    {"txt", "txt", FieldType::text, Encoding::raw},
    {"transcript", "transcript", FieldType::text, Encoding::raw},
    {"a.b.txt", "a.b", FieldType::text, Encoding::raw},
    {"json", "json", FieldType::text, Encoding::raw},
    {"meta.json", "meta", FieldType::text, Encoding::raw},
    {"npy", "npy", FieldType::array, Encoding::npy},
    {"depth.npy", "depth", FieldType::array, Encoding::npy},
    {"words.byteslist", "words", FieldType::list, Encoding::tf_strings},
    {"byteslist", "byteslist", FieldType::bytes, Encoding::raw},
    {"", "data", FieldType::bytes, Encoding::raw},
    {"seg.png", "seg.png", FieldType::bytes, Encoding::raw},
    {"mp3", "mp3", FieldType::bytes, Encoding::raw},
    {".txt", ".txt", FieldType::bytes, Encoding::raw},
    {"a%2Fb", "a/b", FieldType::bytes, Encoding::raw},
    {"%6Apg", "jpg", FieldType::bytes, Encoding::raw},
    {"50%", "50%", FieldType::bytes, Encoding::raw},
    {"%.txt", "", FieldType::text, Encoding::raw},
};

TEST(MemberName, SuffixSaysWhichFieldItIs) {
  for (const Case& one : kCases) {
    const FieldOfSuffix field = field_of_suffix(one.suffix);
    EXPECT_EQ(field.name, one.name) << one.suffix;
    EXPECT_EQ(field.type, one.type) << one.suffix;
    EXPECT_EQ(field.encoding, one.encoding) << one.suffix;
    EXPECT_EQ(field.image, is_image_suffix(one.suffix)) << one.suffix;
  }
}

TEST(MemberName, ImagesAreKnownByTheirBeginning) {
  EXPECT_EQ(image_suffix_of("\xFF\xD8\xFF\xE0"), "jpg");
  EXPECT_EQ(image_suffix_of("RIFF1234WEBP"), "webp");
  EXPECT_EQ(image_suffix_of("RIFF1234WAVE"), "");
  for (const char* shorter : {"", "B", "RIFF", "RIFF1", "RIFF1234WEB"}) {
    EXPECT_EQ(image_suffix_of(shorter), "") << shorter;
  }
}

TEST(MemberName, SuffixOfTheSourceIsKeptWhereItSaysTheSame) {
  for (const Case& one : kCases) {
    if (*one.suffix == '\0') continue;
    EXPECT_EQ(suffix_of_field(one.name, one.type, one.encoding, one.suffix), one.suffix);
  }
  EXPECT_EQ(suffix_of_field("label", FieldType::number, Encoding::npy, "npy"), "label.npy");
}

TEST(MemberName, EveryFieldHasASuffixThatComesBack) {
  const std::string awkward[] = {"jpg",  "image", "label", "cls",  "txt",        "json",
                                 "npy",  "x.txt", "",      "%",    "%41",        "a/b",
                                 "a\nb", "..",    "x.",    "data", ".cls",       "a.b.npy",
                                 "\xff", "/",     "jsn",   "%%",   "x.byteslist"};
  const std::pair<FieldType, Encoding> kinds[] = {{FieldType::bytes, Encoding::raw},
                                                  {FieldType::text, Encoding::raw},
                                                  {FieldType::number, Encoding::decimal},
                                                  {FieldType::array, Encoding::npy},
                                                  {FieldType::list, Encoding::tf_strings}};
  for (const std::string& name : awkward) {
    for (const auto& [type, encoding] : kinds) {
      const std::string suffix = suffix_of_field(name, type, encoding, "");
      const FieldOfSuffix field = field_of_suffix(suffix);
      EXPECT_EQ(field.name, name) << suffix;
      EXPECT_EQ(field.type, type) << suffix;
      EXPECT_EQ(field.encoding, encoding) << suffix;
      EXPECT_EQ(split("key." + suffix), "key|" + suffix);
    }
  }
}

TEST(MemberName, MadeSuffixes) {
  EXPECT_EQ(suffix_of_field("jpg", FieldType::bytes, Encoding::raw, ""), "%6Apg");
  EXPECT_EQ(suffix_of_field("label", FieldType::number, Encoding::decimal, ""), "cls");
  EXPECT_EQ(suffix_of_field("caption", FieldType::text, Encoding::raw, ""), "caption.txt");
  EXPECT_EQ(suffix_of_field("data", FieldType::bytes, Encoding::raw, ""), "data");
  EXPECT_EQ(suffix_of_field("image/encoded", FieldType::bytes, Encoding::raw, ""),
            "image%2Fencoded");
  // A number without dimensions may lie in an .npy file.
  EXPECT_EQ(suffix_of_field("x", FieldType::number, Encoding::npy, ""), "x.npy");
  EXPECT_THROW(suffix_of_field("x", FieldType::number, Encoding::tf_int64s, ""), Error);
}

Names names_of(const Names& suffixes) {
  std::vector<FoundField> fields(suffixes.size());
  for (size_t i = 0; i < suffixes.size(); ++i) fields[i].suffix = suffixes[i];
  Names names;
  name_fields(fields, names);
  for (size_t i = 0; i < suffixes.size(); ++i) EXPECT_EQ(fields[i].name, names[i]);
  return names;
}

TEST(MemberName, FieldsOfASample) {
  EXPECT_EQ(names_of({"jpg", "cls"}), (Names{"image", "label"}));
  EXPECT_EQ(names_of({"png", "jpg", "cls"}), (Names{"png", "image", "label"}));
  EXPECT_EQ(names_of({"jpg", "JPG"}), (Names{"jpg", "image"}));
  EXPECT_EQ(names_of({"x.txt", "x.json", "y.txt"}), (Names{"x.txt", "x.json", "y"}));
  EXPECT_EQ(names_of({"x.txt", "x.json", "x.txt.txt"}), (Names{"x.txt", "x.json", "x.txt.txt"}));
  EXPECT_EQ(names_of({"image", "jpg"}), (Names{"image", "jpg"}));
  EXPECT_EQ(names_of({"", "data"}), (Names{"", "data"}));
  EXPECT_EQ(names_of({}), Names());
}

TEST(MemberName, ManyFieldsOfASample) {
  Names suffixes;
  for (int i = 0; i < 3000; ++i)
    suffixes.push_back(std::to_string(i) + (i % 3 == 0 ? ".txt" : ".bin"));
  suffixes.push_back("0.json");
  const Names names = names_of(suffixes);
  EXPECT_EQ(names[0], "0.txt");
  EXPECT_EQ(names[1], "1.bin");
  EXPECT_EQ(names[3], "3");
  EXPECT_EQ(names.back(), "0.json");
}

TEST(MemberName, NumbersAreInt64) {
  std::vector<FoundField> fields(2);
  fields[0].suffix = "cls";
  fields[1].suffix = "npy";
  Names names;
  name_fields(fields, names);
  EXPECT_EQ(fields[0].dtype, DType::int64);
  EXPECT_EQ(fields[1].dtype, DType::unknown);
}

TEST(MemberName, TypedSuffixesInAnyCase) {
  EXPECT_EQ(field_of_suffix("CLS").name, "label");
  EXPECT_EQ(field_of_suffix("Json").name, "json");
  EXPECT_EQ(field_of_suffix("Json").type, FieldType::text);
  EXPECT_EQ(field_of_suffix("Mask").name, "Mask");
  // A field whose name only looks like it keeps its name and type.
  const std::string suffix = suffix_of_field("JSON", FieldType::bytes, Encoding::raw, "");
  EXPECT_EQ(field_of_suffix(suffix).name, "JSON");
  EXPECT_EQ(field_of_suffix(suffix).type, FieldType::bytes);
}

}  // namespace
}  // namespace stoker
