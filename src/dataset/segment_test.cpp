// SPDX-License-Identifier: Apache-2.0
#include "dataset/segment.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/hash.h"
#include "dataset/segment_writer.h"
#include "os/output_file.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

class SegmentTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) /
                 fmt::format("segment-{}-{}", ::getpid(),
                             testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::string path() const { return path_; }
  /// Writes the segment; path() is then where it lies.
  SegmentEntry write(const SegmentWriter& writer, Depth depth) {
    SegmentEntry entry = writer.write(directory_.string(), "a", depth, 0);
    path_ = (directory_ / entry.file).string();
    return entry;
  }

  static FoundField image(uint64_t offset, uint64_t length, std::string_view suffix = "jpg") {
    FoundField field;
    field.name = "image";
    field.suffix = suffix;
    field.extent = {Container::shard, 0, offset, length, 77};
    return field;
  }
  static FoundField label(int64_t value) {
    FoundField field;
    field.name = "label";
    field.type = FieldType::number;
    field.encoding = Encoding::none;
    field.dtype = DType::int64;
    field.integer = value;
    return field;
  }

  /// `count` samples "s/0", "s/1", …, each with an image; the even ones have a label.
  static SegmentWriter many(uint64_t count) {
    SegmentWriter writer;
    writer.add_shard({"dir/a.tar", 1 << 20, 5, 0, 1 << 20, 99, Compression::none});
    for (uint64_t i = 0; i < count; ++i) {
      std::vector<FoundField> fields{image(i * 1000, 900, i % 3 == 0 ? "png" : "jpg")};
      if (i % 2 == 0) fields.push_back(label(static_cast<int64_t>(i) - 5));
      EXPECT_TRUE(writer.add_sample("s/" + std::to_string(i), fields).empty());
    }
    return writer;
  }

  fs::path directory_;
  std::string path_ = "/nonexistent/a.seg";
};

TEST_F(SegmentTest, GivesBackWhatWasWritten) {
  const SegmentWriter writer = many(10000);
  const uint32_t crc = write(writer, Depth::full).header_crc;
  const Segment segment(path());
  EXPECT_EQ(segment.samples(), 10000U);
  EXPECT_EQ(segment.depth(), Depth::full);
  EXPECT_EQ(segment.header_crc(), crc);
  ASSERT_EQ(segment.shard_count(), 1U);
  EXPECT_EQ(segment.shard(0), (Shard{"dir/a.tar", 1 << 20, 5, 0, 1 << 20, 99, Compression::none}));
  ASSERT_EQ(segment.fields().size(), 2U);
  EXPECT_EQ(segment.fields()[0].suffixes, (std::vector<std::string>{"png", "jpg"}));
  EXPECT_EQ(segment.fields()[1].present, 5000U);
  for (const uint64_t i : {0, 1, 2, 4999, 9998, 9999}) {
    EXPECT_EQ(segment.key(i), "s/" + std::to_string(i));
    const Located at = segment.locate(i, 0);
    EXPECT_EQ(at.extent, (Extent{Container::shard, 0, i * 1000, 900, 77}));
    EXPECT_EQ(segment.fields()[0].suffixes[at.suffix], i % 3 == 0 ? "png" : "jpg");
    const Located number = segment.locate(i, 1);
    EXPECT_EQ(number.present, i % 2 == 0);
    if (number.present) {
      EXPECT_TRUE(number.has_scalar);
      EXPECT_EQ(static_cast<int64_t>(number.scalar), static_cast<int64_t>(i) - 5);
    }
  }
}

TEST_F(SegmentTest, FindsEveryKeyAndNoOther) {
  write(many(5000), Depth::structure);
  const Segment segment(path());
  std::vector<uint64_t> found;
  for (uint64_t i = 0; i < 5000; ++i) {
    found.clear();
    segment.find_hash(hash64("s/" + std::to_string(i)), found);
    EXPECT_EQ(found, std::vector<uint64_t>{i});
  }
  found.clear();
  for (const uint64_t absent : {uint64_t{0}, ~uint64_t{0}, hash64("s/5000"), hash64("")}) {
    segment.find_hash(absent, found);
  }
  EXPECT_TRUE(found.empty());
}

TEST_F(SegmentTest, TakesAtMost64BytesPerSampleAndFieldBesideTheKey) {
  SegmentWriter writer;
  writer.add_shard({"a.tar", 1, 0, 0, 1, 0, Compression::none});
  uint64_t keys = 0;
  for (uint64_t i = 0; i < 100000; ++i) {
    const std::string key = std::to_string(i);
    keys += key.size();
    const FoundField one = image(i, 1);
    writer.add_sample(key, {&one, 1});
  }
  write(writer, Depth::full);
  EXPECT_LE((fs::file_size(path()) - keys) / 100000.0, 64.0);
}

TEST_F(SegmentTest, EmptySegment) {
  write(SegmentWriter(), Depth::full);
  const Segment segment(path());
  EXPECT_EQ(segment.samples(), 0U);
  segment.verify_all();
}

TEST_F(SegmentTest, ConflictingFieldIsNamedAndLeftOut) {
  SegmentWriter writer;
  FoundField text = image(0, 1);
  text.type = FieldType::text;
  const FoundField bytes = image(0, 1);
  EXPECT_TRUE(writer.add_sample("a", {&bytes, 1}).empty());
  const std::vector<std::string> conflicts = writer.add_sample("b", {&text, 1});
  ASSERT_EQ(conflicts.size(), 1U);
  EXPECT_NE(conflicts[0].find("image"), std::string::npos);
  write(writer, Depth::structure);
  const Segment segment(path());
  EXPECT_TRUE(segment.locate(0, 0).present);
  EXPECT_FALSE(segment.locate(1, 0).present);
}

/// Touches everything there is to touch.
void read_all(const Segment& segment) {
  segment.verify_all();
  for (uint32_t i = 0; i < segment.shard_count(); ++i) (void)segment.shard(i);
  for (uint64_t i = 0; i < segment.samples(); ++i) {
    (void)segment.key(i);
    for (uint32_t f = 0; f < segment.fields().size(); ++f) (void)segment.locate(i, f);
  }
}

TEST_F(SegmentTest, EveryFlippedBitIsNoticedOrHarmless) {
  write(many(40), Depth::full);
  const std::string good = read_file(path(), 1 << 20);
  size_t noticed = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
    std::ofstream(path(), std::ios::binary) << bad;
    try {
      const Segment segment(path());
      read_all(segment);
      EXPECT_EQ(segment.key(7), "s/7") << "byte " << i;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::corrupt);
      EXPECT_NE(std::string(error.what()).find("run stoker index"), std::string::npos);
      ++noticed;
    }
  }
  // Padding before the tables (< 64 bytes) and one reserved word carry nothing.
  EXPECT_GE(noticed, good.size() - 68);
}

TEST_F(SegmentTest, EveryTruncationIsNoticed) {
  write(many(40), Depth::full);
  const std::string good = read_file(path(), 1 << 20);
  for (size_t size = 0; size < good.size(); ++size) {
    std::ofstream(path(), std::ios::binary) << good.substr(0, size);
    EXPECT_THROW(read_all(Segment(path())), Error) << size;
  }
}

TEST_F(SegmentTest, MissingFileSaysWhatToDo) {
  try {
    const Segment segment(path());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    EXPECT_NE(std::string(error.what()).find("run stoker index"), std::string::npos);
  }
}

TEST_F(SegmentTest, ThreadedReadersSeeTheSame) {
  write(many(20000), Depth::full);
  const Segment segment(path());
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < segment.samples(); i += 7) {
        EXPECT_EQ(segment.key(i), "s/" + std::to_string(i));
        EXPECT_EQ(segment.locate(i, 0).extent.offset, i * 1000);
      }
    });
  }
}

TEST_F(SegmentTest, EquallySpacedExtentsTakeLittle) {
  for (const Depth depth : {Depth::structure, Depth::full}) {
    SegmentWriter writer;
    writer.add_shard({"x.npy", 1 << 30, 0, 0, 1 << 30, 0, Compression::none});
    std::vector<Extent> expected;
    for (uint32_t i = 0; i < 10'000; ++i) {
      FoundField field = image(128 + i * 784ULL, 784);
      field.extent.crc = depth == Depth::full ? i : 0;
      expected.push_back(field.extent);
      writer.add_sample(std::to_string(i), {&field, 1});
    }
    write(writer, depth);
    const Segment segment(path());
    segment.verify_all();
    for (uint64_t i = 0; i < 10'000; i += 7) EXPECT_EQ(segment.locate(i, 0).extent, expected[i]);
    EXPECT_THROW((void)segment.locate(10'000, 0), Error);
    // Besides keys of 4 digits and what look-up by key takes.
    EXPECT_LT(fs::file_size(path()), 10'000 * (depth == Depth::full ? 29 : 25));
  }
}

TEST_F(SegmentTest, ViewsBelongToTheirShards) {
  SegmentWriter writer;
  const Shard plain{"x.h5", 1 << 30, 0, 0, 1 << 30, 0, Compression::none};
  const Shard first{"x.h5", 1 << 30, 0, 0, 10, 0, Compression::tiled, std::string("fi\0st", 5)};
  const Shard second{"x.h5", 1 << 30, 0, 0, 20, 0, Compression::tiled, "second"};
  const std::vector<Shard> shards{first, plain, second};
  for (const Shard& shard : shards) writer.add_shard(shard);
  const FoundField field = image(0, 10);
  writer.add_sample("a", {&field, 1});
  EXPECT_EQ(write(writer, Depth::structure).shards, 1);  // views are none of their own
  const Segment segment(path());
  segment.verify_all();
  for (uint32_t i = 0; i < shards.size(); ++i) {
    Shard shard = segment.shard(i);
    shard.view = segment.view(i);
    EXPECT_EQ(shard, shards[i]);
  }
}

TEST_F(SegmentTest, NoPathLeadsOutOfTheDataset) {
  for (const char* name : {"../x.tar", "/x.tar", "a/../../x.tar", "", "a//b.tar", "a/./b.tar"}) {
    SegmentWriter writer;
    writer.add_shard({name, 100, 0, 0, 100, 0, Compression::none});
    FoundField file = image(5, 10);
    file.extent = {Container::file, 0, 5, 10, 0};
    writer.add_sample(std::string(name) + "/key", {&file, 1});
    write(writer, Depth::full);
    const Segment segment(path());
    EXPECT_THROW((void)segment.shard(0), Error) << name;
    EXPECT_EQ(segment.key(0), std::string(name) + "/key") << "a key alone is no path";
    EXPECT_THROW((void)segment.file_path(0, 0, segment.locate(0, 0)), Error) << name;
  }
}

TEST_F(SegmentTest, OneExtentElsewhereIsKept) {
  SegmentWriter writer;
  writer.add_shard({"x.npy", 1 << 30, 0, 0, 1 << 30, 0, Compression::none});
  for (uint64_t i = 0; i < 100; ++i) {
    const FoundField field = image(i == 99 ? 7 : i * 10, 10);
    writer.add_sample(std::to_string(i), {&field, 1});
  }
  write(writer, Depth::full);
  const Segment segment(path());
  EXPECT_EQ(segment.locate(98, 0).extent, (Extent{Container::shard, 0, 980, 10, 77}));
  EXPECT_EQ(segment.locate(99, 0).extent, (Extent{Container::shard, 0, 7, 10, 77}));
}

}  // namespace
}  // namespace stoker
