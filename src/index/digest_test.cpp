// SPDX-License-Identifier: Apache-2.0
#include "index/digest.h"

#include <gtest/gtest.h>

#include <random>

#include "base/crc32c.h"

namespace stoker {
namespace {

class MemoryFile final : public ReadableFile {
 public:
  explicit MemoryFile(size_t size) : bytes(size) {
    std::mt19937_64 random(7);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  }
  size_t read_at(uint64_t offset, MutableBytes into) override {
    const size_t count = std::min<uint64_t>(into.size(), bytes.size() - offset);
    std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(offset), count, into.begin());
    return count;
  }
  size_t read_at(uint64_t, std::span<const MutableBytes>) override { return 0; }
  FileInfo info() override { return {}; }

  std::vector<std::byte> bytes;
};

void expect_right(MemoryFile& file, std::vector<DigestRegion> regions, uint64_t begin, uint64_t end,
                  unsigned threads) {
  std::vector<std::vector<std::byte>> beginnings(regions.size());
  for (size_t i = 0; i < regions.size(); ++i) {
    beginnings[i].resize(std::min<uint64_t>(regions[i].length, 100));
    regions[i].beginning = beginnings[i];
  }
  const Digest digest = digest_parallel(file, begin, end, regions, threads, nullptr);
  const Bytes all(file.bytes);
  EXPECT_EQ(digest.crc, crc32c(all.subspan(begin, end - begin)));
  EXPECT_EQ(digest.end, end);
  for (size_t i = 0; i < regions.size(); ++i) {
    const Bytes mine = all.subspan(regions[i].offset, regions[i].length);
    EXPECT_EQ(regions[i].crc, crc32c(mine)) << i;
    EXPECT_TRUE(std::equal(beginnings[i].begin(), beginnings[i].end(), mine.begin())) << i;
  }
}

TEST(Digest, RegionsThatNestTouchAndAreEmpty) {
  MemoryFile file(1 << 20);
  expect_right(file, {}, 0, 1 << 20, 1);
  expect_right(file, {}, 5, 5, 1);
  expect_right(file,
               {{0, 10, 0, {}},
                {10, 0, 0, {}},
                {10, 500'000, 0, {}},
                {20, 300'000, 0, {}},
                {300'020, 7, 0, {}},
                {600'000, (1 << 20) - 600'000, 0, {}}},
               0, 1 << 20, 1);
}

TEST(Digest, ThreadedStretchesGiveTheSame) {
  MemoryFile file(100 << 20);
  std::vector<DigestRegion> regions;
  for (uint64_t at = 1000; at + 200'000 < file.bytes.size(); at += 200'100) {
    regions.push_back({at, 200'000, 0, {}});
    regions.push_back({at + 10, 50, 0, {}});
  }
  expect_right(file, regions, 512, file.bytes.size(), 3);
}

TEST(Digest, FileThatEndsEarly) {
  MemoryFile file(1000);
  const Digest digest = digest_range(file, 0, 5000, {}, nullptr);
  EXPECT_EQ(digest.end, 1000U);
  EXPECT_EQ(digest.crc, crc32c(Bytes(file.bytes)));
}

}  // namespace
}  // namespace stoker
