// SPDX-License-Identifier: Apache-2.0
#include "dataset/manifest.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/json.h"
#include "os/output_file.h"

namespace stoker {
namespace {

std::string temporary() {
  return testing::TempDir() + "manifest-" + std::to_string(::getpid()) + ".json";
}

Manifest example() {
  Manifest manifest;
  manifest.format = "tar";
  manifest.depth = Depth::full;
  manifest.schema.fields.push_back(
      {"image", FieldType::bytes, Encoding::raw, DType::unknown, {}, {"jpg"}, 12});
  manifest.schema.classes = {"cat", "d\xffog", "100% \"bird\"\n"};
  manifest.segments.push_back({"a.000.seg", 12, 1, 1000, 0xDEADBEEF});
  manifest.segments.push_back({"b.000.seg", 3, 1, 10, 1});
  return manifest;
}

TEST(Manifest, GivesBackWhatWasWritten) {
  const std::string path = temporary();
  example().write(path, 0);
  const Manifest read = Manifest::read(path);
  EXPECT_EQ(read.format, "tar");
  EXPECT_EQ(read.depth, Depth::full);
  EXPECT_EQ(read.schema.classes, example().schema.classes);
  EXPECT_EQ(read.schema.fields, example().schema.fields);
  EXPECT_EQ(read.samples(), 15U);
  EXPECT_EQ(read.bytes(), 1010U);
  EXPECT_EQ(read.segments[0].header_crc, 0xDEADBEEF);
  EXPECT_TRUE(parse_json(read_file(path, 1 << 20)).is_object()) << "any JSON parser reads it";
  std::filesystem::remove(path);
}

TEST(Manifest, NamesOfSegmentsStayInTheirDirectory) {
  const std::string path = temporary();
  for (const char* name : {"../a.seg", "/a.seg", "b/a.seg", "..", ".", "", "./a.seg"}) {
    Manifest manifest = example();
    manifest.segments[1].file = name;
    manifest.write(path, 0);
    try {
      Manifest::read(path);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::corrupt);
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
  }
  std::filesystem::remove(path);
}

TEST(Manifest, SumsOfSamplesDoNotOverflow) {
  const std::string path = temporary();
  Manifest manifest = example();
  manifest.segments[0].samples = manifest.segments[1].samples = uint64_t{1} << 63;
  manifest.write(path, 0);
  EXPECT_THROW(Manifest::read(path), Error);
  std::filesystem::remove(path);
}

TEST(Manifest, EveryFlippedBitAndTruncationIsNoticed) {
  const std::string path = temporary();
  example().write(path, 0);
  const std::string good = read_file(path, 1 << 20);
  const auto expect_noticed = [&](const std::string& bad, size_t where) {
    std::ofstream(path, std::ios::binary) << bad;
    try {
      Manifest::read(path);
      ADD_FAILURE() << "byte " << where;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::corrupt);
      EXPECT_NE(std::string(error.what()).find("run stoker index"), std::string::npos);
    }
  };
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
    expect_noticed(bad, i);
    expect_noticed(good.substr(0, i), i);
  }
  std::filesystem::remove(path);
}

TEST(Manifest, MissingIsNotFound) {
  try {
    Manifest::read("/nonexistent/manifest.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
  }
}

}  // namespace
}  // namespace stoker
