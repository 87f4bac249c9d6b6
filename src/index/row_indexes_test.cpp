// SPDX-License-Identifier: Apache-2.0
#include "index/row_indexes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/crc32c.h"
#include "base/error.h"
#include "dataset/segment_writer.h"
#include "os/scratch_directory.h"

namespace stoker {
namespace {

constexpr uint64_t kSamples = 1000;

/// A segment whose samples have an image, which is no photo, but for every tenth; the first one is
/// not what its checksum says.
class RowIndexesMade : public testing::Test {
 protected:
  void SetUp() override {
    std::string shard;
    SegmentWriter writer;
    for (uint64_t i = 0; i < kSamples; ++i) {
      const std::string image = fmt::format("image {}", i);
      FoundField field;
      field.name = i % 10 == 9 ? "other" : kImageField;
      field.extent = {Container::shard, 0, shard.size(), image.size(), crc32c(as_bytes(image))};
      if (i == 0) ++field.extent.crc;
      if (field.name == kImageField) image_bytes_ += image.size();
      writer.add_sample(fmt::format("k{}", i), {&field, 1});
      shard += image;
    }
    writer.add_shard({"a.bin", shard.size(), 0, 0, shard.size(), 0, Compression::none});
    std::ofstream(scratch_.path() + "/a.bin", std::ios::binary) << shard;
    entry_ = writer.write(scratch_.path(), "a", Depth::full, 0);
  }

  RowIndexWork work(Progress& progress) const {
    return {scratch_.path(), {scratch_.path()}, 4, &shares_, &progress, nullptr};
  }
  std::string path() const { return row_index_path(scratch_.path() + "/" + entry_.file); }

  ScratchDirectory scratch_;
  SegmentEntry entry_;
  uint64_t image_bytes_ = 0;
  ThreadShares shares_{3, 1};
};

TEST_F(RowIndexesMade, SayWhatThePhotosAre) {
  Progress progress;
  make_row_indexes(work(progress), entry_, {kSamples, 12'345});
  EXPECT_EQ(progress.samples, kSamples);
  EXPECT_EQ(progress.bytes, 12'345U);
  const RowIndexSummary summary = row_index_summary(scratch_.path(), {&entry_, 1});
  EXPECT_EQ(summary.all(), kSamples - kSamples / 10);
  EXPECT_EQ(summary.photos[static_cast<size_t>(DecodePath::damaged)], 1U);
  EXPECT_EQ(summary.photos[static_cast<size_t>(DecodePath::other)], summary.all() - 1);
  EXPECT_EQ(summary.photo_bytes, image_bytes_);
  EXPECT_EQ(summary.indexed(), 0U);
  EXPECT_EQ(RowIndexFile(path(), entry_.header_crc, kSamples).facts().every, 4U);
}

TEST_F(RowIndexesMade, AreUsedAgain) {
  Progress progress;
  make_row_indexes(work(progress), entry_, {});
  const auto before = std::filesystem::last_write_time(path());
  make_row_indexes(work(progress), entry_, {kSamples, 7});
  EXPECT_EQ(std::filesystem::last_write_time(path()), before);
  EXPECT_EQ(progress.samples, kSamples);
  EXPECT_EQ(progress.bytes, 7U);
}

TEST_F(RowIndexesMade, StopLeavesNothingBehind) {
  Progress progress;
  progress.stop = true;
  try {
    make_row_indexes(work(progress), entry_, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::interrupted);
  }
  for (const auto& file : std::filesystem::directory_iterator(scratch_.path())) {
    EXPECT_TRUE(file.path().extension() == ".seg" || file.path().extension() == ".bin");
  }
}

TEST(RowIndexWord, IsUnderstoodOrRefused) {
  EXPECT_EQ(parse_row_index("rows"), 0U);
  EXPECT_EQ(parse_row_index("16"), 16U);
  EXPECT_EQ(parse_row_index("none"), std::nullopt);
  for (const char* word : {"", "0", "-1", "row", "65537", "1x"}) {
    EXPECT_THROW(parse_row_index(word), Error) << word;
  }
}

}  // namespace
}  // namespace stoker
