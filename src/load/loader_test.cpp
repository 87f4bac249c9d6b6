// SPDX-License-Identifier: Apache-2.0
#include "load/loader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <map>

#include "base/crc32c.h"
#include "base/error.h"
#include "dataset/segment_writer.h"
#include "os/scratch_directory.h"

namespace stoker {
namespace {

/// A picture of 8 x 8 pixels that are all `shade`.
std::string bitmap(uint8_t shade) {
  constexpr uint32_t kSide = 8;
  std::string data(54 + kSide * kSide * 3, static_cast<char>(shade));
  std::fill_n(data.begin(), 54, '\0');
  const auto put = [&](size_t at, uint32_t value) { std::memcpy(data.data() + at, &value, 4); };
  data[0] = 'B';
  data[1] = 'M';
  put(10, 54);
  put(14, 40);
  put(18, kSide);
  put(22, kSide);
  data[28] = 24;
  return data;
}

/// `count` such pictures in one shard; the label of each is its shade.
class LoaderThreaded : public testing::Test {
 protected:
  std::shared_ptr<const Index> make(uint64_t count) {
    std::string shard;
    SegmentWriter writer;
    for (uint64_t i = 0; i < count; ++i) {
      const std::string picture = bitmap(static_cast<uint8_t>(i));
      FoundField fields[2];
      fields[0].name = kImageField;
      fields[0].extent = {Container::shard, 0, shard.size(), picture.size(),
                          crc32c(as_bytes(picture))};
      fields[1].name = kLabelField;
      fields[1].type = FieldType::number;
      fields[1].encoding = Encoding::none;
      fields[1].dtype = DType::int64;
      fields[1].integer = static_cast<int64_t>(i);
      writer.add_sample(fmt::format("k{}", i), fields);
      shard += picture;
    }
    writer.add_shard({"a.bin", shard.size(), 0, 0, shard.size(), 0, Compression::none});
    std::ofstream(scratch_.path() + "/a.bin", std::ios::binary) << shard;
    Manifest manifest;
    manifest.format = "tar";
    manifest.depth = Depth::full;
    manifest.schema.fields = writer.fields();
    manifest.segments.push_back(writer.write(scratch_.path(), "a", Depth::full, 0));
    manifest.write(scratch_.path() + "/" + kManifestName, 0);
    return std::make_shared<Index>(scratch_.path());
  }

  static LoaderOptions options(unsigned threads) {
    LoaderOptions options;
    options.batch_size = 10;
    options.order.seed = 3;
    options.threads = threads;
    GeometryStep crop;
    crop.kind = GeometryStep::Kind::random_resized_crop;
    crop.size = {4, 4};
    options.picture.emplace().geometry = Geometry({crop});
    return options;
  }

  std::unique_ptr<Loader> loader(std::shared_ptr<const Index> index, const LoaderOptions& options) {
    return std::make_unique<Loader>(std::vector<LoadSource>{{std::move(index), {scratch_.path()}}},
                                    options);
  }

  static int64_t label(const LoadedBatch& batch, uint64_t row) {
    return load<int64_t>(batch.find(kLabelField)->row(row));
  }
  static int64_t pixel(const LoadedBatch& batch, uint64_t row, size_t number) {
    return std::to_integer<int64_t>(batch.find(kImageField)->row(row)[number]);
  }

  static std::shared_ptr<LoadedBatch> next(Loader& loader) {
    std::shared_ptr<LoadedBatch> batch;
    while (loader.next(batch, std::chrono::milliseconds(20)) == Loader::Next::not_yet) {
    }
    return batch;
  }

  ScratchDirectory scratch_;
};

TEST_F(LoaderThreaded, EveryPictureComesOnceWithItsLabel) {
  const auto loading = loader(make(105), options(8));
  for (uint64_t epoch = 0; epoch < 5; ++epoch) {
    loading->start(epoch, 0);
    std::map<int64_t, int> seen;
    uint64_t batches = 0;
    while (const auto batch = next(*loading)) {
      ++batches;
      for (uint64_t row = 0; row < batch->rows; ++row) {
        ++seen[label(*batch, row)];
        for (int i = 0; i < 48; ++i) ASSERT_EQ(pixel(*batch, row, i), label(*batch, row));
      }
    }
    EXPECT_EQ(batches, 11U);
    EXPECT_EQ(seen.size(), 105U);
  }
  EXPECT_EQ(loading->stats().samples, 105U);
}

TEST_F(LoaderThreaded, MayBeDroppedAnywhere) {
  const auto index = make(200);
  for (int taken = 0; taken < 20; ++taken) {
    const auto loading = loader(index, options(8));
    loading->start(0, 0);
    for (int i = 0; i < taken % 7; ++i) ASSERT_NE(next(*loading), nullptr);
    if (taken % 2 == 0) loading->start(1, 50);
  }
}

TEST_F(LoaderThreaded, FailureReachesWhoeverAsks) {
  const auto index = make(100);
  {
    std::fstream shard(scratch_.path() + "/a.bin", std::ios::binary | std::ios::in | std::ios::out);
    shard.seekp(static_cast<std::streamoff>(40 * bitmap(0).size() + 100));
    shard.put('x');
  }
  const auto failing = loader(index, options(8));
  failing->start(0, 0);
  try {
    while (next(*failing) != nullptr) {
    }
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'k40'"), std::string::npos) << error.what();
  }
  LoaderOptions skipping = options(8);
  skipping.on_error = OnError::skip;
  const auto careful = loader(index, skipping);
  careful->start(0, 0);
  uint64_t rows = 0;
  while (const auto batch = next(*careful)) rows += batch->rows;
  EXPECT_EQ(rows, 99U);
  ASSERT_EQ(careful->stats().bad.size(), 1U);
  EXPECT_EQ(careful->stats().bad[0].sample, "k40");
}

/// The labels of an epoch, by how often they came.
std::map<int64_t, int> labels_of(Loader& loading, uint64_t epoch) {
  loading.start(epoch, 0);
  std::map<int64_t, int> seen;
  std::shared_ptr<LoadedBatch> batch;
  for (;;) {
    const Loader::Next next = loading.next(batch, std::chrono::milliseconds(20));
    if (next == Loader::Next::end) return seen;
    if (next == Loader::Next::not_yet) continue;
    for (uint64_t row = 0; row < batch->rows; ++row) {
      ++seen[load<int64_t>(batch->find(kLabelField)->row(row))];
    }
  }
}

TEST_F(LoaderThreaded, BlocksComeWholeWithAnyNumberOfRanks) {
  const auto index = make(200);
  LoaderOptions blocks = options(8);
  blocks.order.kind = OrderOptions::Kind::blocks;
  blocks.block_bytes = 1'000;
  blocks.window_bytes = 6'000;
  for (const uint32_t world : {1U, 2U, 3U}) {
    std::map<int64_t, int> seen;
    for (uint32_t rank = 0; rank < world; ++rank) {
      blocks.ranks = {rank, world};
      blocks.remainder = Remainder::drop;
      for (const auto& [label, count] : labels_of(*loader(index, blocks), 1)) seen[label] += count;
    }
    EXPECT_EQ(seen.size(), 200 / world * world);
    for (const auto& [label, count] : seen) EXPECT_EQ(count, 1) << label;
  }
  // May be left in the midst of a window.
  for (int taken = 0; taken < 6; ++taken) {
    const auto leaving = loader(index, blocks);
    leaving->start(0, 0);
    for (int i = 0; i < taken; ++i) ASSERT_NE(next(*leaving), nullptr);
  }
}

TEST_F(LoaderThreaded, FieldsWithoutPicturesNeedNoDecoding) {
  LoaderOptions plain = options(8);
  plain.picture.reset();
  plain.cache = CacheOptions{"", 10'000};
  const auto loading = loader(make(200), plain);
  for (uint64_t epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(labels_of(*loading, epoch).size(), 200U);
  EXPECT_EQ(loading->stats().decode.threads, 0U);
  EXPECT_GT(loading->stats().cache_hits, 0U);
  EXPECT_LE(loading->stats().cache_bytes, 10'000U);
}

TEST_F(LoaderThreaded, ABadSampleRaisesInItsTurn) {
  const auto index = make(100);
  {
    std::fstream shard(scratch_.path() + "/a.bin", std::ios::binary | std::ios::in | std::ios::out);
    shard.seekp(static_cast<std::streamoff>(73 * bitmap(0).size() + 100));
    shard.put('x');
  }
  LoaderOptions in_order = options(8);
  in_order.order.kind = OrderOptions::Kind::sequential;
  for (int turn = 0; turn < 20; ++turn) {
    const auto failing = loader(index, in_order);
    failing->start(0, 0);
    for (int i = 0; i < 7; ++i) ASSERT_NE(next(*failing), nullptr);
    EXPECT_THROW(next(*failing), Error);
  }
}

TEST_F(LoaderThreaded, BatchesOutliveTheLoader) {
  std::vector<std::shared_ptr<LoadedBatch>> kept;
  {
    const auto loading = loader(make(50), options(4));
    loading->start(0, 0);
    while (auto batch = next(*loading)) kept.push_back(std::move(batch));
  }
  for (const auto& batch : kept) {
    for (uint64_t row = 0; row < batch->rows; ++row) {
      EXPECT_EQ(pixel(*batch, row, 0), label(*batch, row));
    }
  }
}

}  // namespace
}  // namespace stoker
