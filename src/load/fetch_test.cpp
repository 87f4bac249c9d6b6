// SPDX-License-Identifier: Apache-2.0
#include "load/fetch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/crc32c.h"
#include "dataset/segment_writer.h"
#include "os/scratch_directory.h"

namespace stoker {
namespace {

constexpr uint64_t kPhotos = 8;

/// What stands for the row index of a photo; every third has none.
std::string rows_of(uint64_t sample) {
  return sample % 3 == 2 ? "" : fmt::format("rows of photo {}", sample);
}

/// Photos of one shard, with row indexes beside their segment.
class RowIndexesFetched : public testing::Test {
 protected:
  void SetUp() override {
    std::string shard;
    SegmentWriter writer;
    for (uint64_t i = 0; i < kPhotos; ++i) {
      const std::string photo = fmt::format("photo {}", i);
      FoundField field;
      field.name = kImageField;
      field.extent = {Container::shard, 0, shard.size(), photo.size(), crc32c(as_bytes(photo))};
      writer.add_sample(fmt::format("k{}", i), {&field, 1});
      shard += photo;
    }
    writer.add_shard({"a.bin", shard.size(), 0, 0, shard.size(), 0, Compression::none});
    std::ofstream(scratch_.path() + "/a.bin", std::ios::binary) << shard;
    manifest_.schema.fields = writer.fields();
    manifest_.segments.push_back(writer.write(scratch_.path(), "a", Depth::full, 0));
  }

  std::string path() const {
    return row_index_path(scratch_.path() + "/" + manifest_.segments.front().file);
  }
  void write_rows() const {
    RowIndexFileWriter rows(path(), manifest_.segments.front().header_crc, kPhotos, 0);
    for (uint64_t i = 0; i < kPhotos; ++i) rows.add(as_bytes(rows_of(i)));
    rows.commit({});
  }

  /// What comes with the photos, in the order in which they are asked for.
  std::vector<std::string> fetch(const std::vector<uint64_t>& samples, SampleCache* cache = nullptr,
                                 ColumnPlan::Kind kind = ColumnPlan::Kind::pictures) const {
    const Sources sources(
        {{std::make_shared<Index>(scratch_.path(), manifest_), {scratch_.path()}}});
    std::vector<ColumnPlan> columns = plan_columns(sources, {std::string(kImageField)});
    columns.front().kind = kind;
    const SampleFetcher fetcher(sources, columns, cache);
    std::vector<std::string> found;
    for (const FetchedRow& row : fetcher.fetch(samples, nullptr, 0)) {
      const Item& item = row.from->items(row.row).front();
      EXPECT_FALSE(item.failed);
      found.emplace_back(as_text(row.from->row_index(item)));
    }
    return found;
  }
  static std::vector<std::string> expected(const std::vector<uint64_t>& samples) {
    std::vector<std::string> rows;
    for (const uint64_t sample : samples) rows.push_back(rows_of(sample));
    return rows;
  }

  ScratchDirectory scratch_;
  Manifest manifest_;
};

TEST_F(RowIndexesFetched, EachPhotoHasItsOwn) {
  write_rows();
  for (const std::vector<uint64_t>& samples : std::vector<std::vector<uint64_t>>{
           {0, 1, 2, 3, 4, 5, 6, 7}, {7, 0, 3, 4, 4, 1}, {2}, {5, 2}, {6, 7}}) {
    EXPECT_EQ(fetch(samples), expected(samples));
  }
}

TEST_F(RowIndexesFetched, AlsoWithPhotosOfTheCache) {
  write_rows();
  SampleCache cache("", 1 << 20);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(fetch({0, 1, 2, 3}, &cache), expected({0, 1, 2, 3}));
  EXPECT_EQ(cache.hits(), 4U);
}

TEST_F(RowIndexesFetched, NoneWhereNothingIsDecoded) {
  write_rows();
  EXPECT_EQ(fetch({0, 1}, nullptr, ColumnPlan::Kind::values), std::vector<std::string>(2));
}

TEST_F(RowIndexesFetched, NoneWhereTheFileIsMissingOrDamaged) {
  EXPECT_EQ(fetch({0, 1}), std::vector<std::string>(2));
  write_rows();
  std::filesystem::resize_file(path(), std::filesystem::file_size(path()) - 1);
  EXPECT_EQ(fetch({0, 1}), std::vector<std::string>(2));
}

}  // namespace
}  // namespace stoker
