// SPDX-License-Identifier: Apache-2.0
#include "dataset/tiled_file.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "base/error.h"
#include "dataset/codec.h"
#include "os/fake_file_system.h"

namespace stoker {
namespace {

/// An array whose elements tell their place, laid out in chunks the plain way: element by element.
class TiledFileTest : public testing::Test {
 protected:
  void make(uint64_t rows, std::vector<uint64_t> dims, std::vector<uint64_t> chunk,
            uint64_t element, uint64_t begin = 0, uint64_t shown = 0) {
    view_ = {};
    file_.clear();
    view_.rows = rows;
    view_.dims = std::move(dims);
    view_.chunk = std::move(chunk);
    view_.stored_element = element;
    view_.begin = begin;
    view_.element = shown == 0 ? element : shown;
    view_.chains = {{}};
    std::vector<uint64_t> all{rows};
    all.insert(all.end(), view_.dims.begin(), view_.dims.end());
    elements_ = std::accumulate(all.begin(), all.end(), uint64_t{1}, std::multiplies<>());
    std::vector<uint64_t> grid;
    for (size_t i = 0; i < all.size(); ++i) {
      grid.push_back((all[i] + view_.chunk[i] - 1) / view_.chunk[i]);
    }
    const uint64_t chunks =
        std::accumulate(grid.begin(), grid.end(), uint64_t{1}, std::multiplies<>());
    for (uint64_t number = 0; number < chunks; ++number) {
      view_.chunks.push_back({number, number * view_.chunk_bytes(), view_.chunk_bytes(), 0});
    }
    file_.assign(chunks * view_.chunk_bytes(), '#');  // also what lies behind the edges
    for (uint64_t n = 0; n < elements_; ++n) {
      uint64_t rest = n, number = 0, inside = 0, grid_stride = 1, stride = 1;
      for (size_t i = all.size(); i-- > 0;) {
        const uint64_t at = rest % all[i];
        rest /= all[i];
        number += at / view_.chunk[i] * grid_stride;
        inside += at % view_.chunk[i] * stride;
        grid_stride *= grid[i];
        stride *= view_.chunk[i];
      }
      const uint64_t place = number * view_.chunk_bytes() + inside * element;
      file_.replace(place, element, element_text(n));
    }
  }

  std::string element_text(uint64_t n) const {
    std::string text;
    for (uint64_t i = 0; i < view_.stored_element; ++i) {
      text += static_cast<char>(i < 2 ? n >> (8 * i) : n * 7 + i);
    }
    return text;
  }

  std::string expected() const {
    std::string rows;
    for (uint64_t n = 0; n < elements_; ++n) {
      rows += element_text(n).substr(view_.begin, view_.element);
    }
    return rows;
  }

  std::unique_ptr<ReadableFile> open(const ViewLimits& limits = {}) {
    files_.add_file("/x", file_);
    return as_rows(files_.open("/x"), view_, limits);
  }

  static std::string read(ReadableFile& file, uint64_t offset, uint64_t length) {
    std::string text(length, '?');
    text.resize(file.read_at(offset, std::as_writable_bytes(std::span(text))));
    return text;
  }

  TiledView view_;
  uint64_t elements_ = 0;
  std::string file_;
  FakeFileSystem files_;
};

TEST_F(TiledFileTest, ShowsRowsHoweverTheyAreCut) {
  const std::vector<std::vector<uint64_t>> cuts = {
      {4, 3, 2, 1}, {4, 3, 2, 3}, {1, 1, 1, 1}, {4, 7, 5, 3}, {20, 2, 5, 3},
      {3, 7, 2, 3}, {9, 9, 9, 9}, {4, 7, 5, 2}, {2, 3, 5, 2},
  };
  for (const std::vector<uint64_t>& cut : cuts) {
    for (const uint64_t element : {1, 2, 3, 4, 5, 8}) {
      make(9, {7, 5, 3}, cut, element);
      for (const uint64_t memory : {1, 2000, 1 << 20}) {
        const auto file = open({memory, 1});
        EXPECT_EQ(read(*file, 0, 1 << 20), expected());
        EXPECT_EQ(read(*file, 101, 1000), expected().substr(101, 1000));
      }
    }
  }
}

TEST_F(TiledFileTest, ShowsOneMemberOfACompound) {
  make(9, {7, 5}, {4, 7, 5}, 8, 3, 2);
  EXPECT_EQ(read(*open(), 0, 1 << 20), expected());
  make(9, {7, 5}, {2, 3, 2}, 6, 2, 4);
  EXPECT_EQ(read(*open(), 0, 1 << 20), expected());
}

TEST_F(TiledFileTest, ReadingForwardReadsEachChunkOnce) {
  make(40, {8, 8}, {10, 4, 4}, 4);
  const auto file = open({10 * view_.row_bytes(), 1});
  files_.reset_counts();
  for (uint64_t row = 0; row < 40; ++row) {
    EXPECT_EQ(read(*file, row * view_.row_bytes(), view_.row_bytes()),
              expected().substr(row * view_.row_bytes(), view_.row_bytes()));
  }
  EXPECT_EQ(files_.reads(), view_.chunks.size());
}

TEST_F(TiledFileTest, WhatWasNeverWrittenIsTheFillValue) {
  make(6, {4, 4}, {2, 2, 2}, 2);
  view_.fill = "ab";
  std::erase_if(view_.chunks, [](const TiledView::Chunk& chunk) {
    return chunk.number == 1 || chunk.number / 4 == 2;
  });
  const auto file = open();
  std::string wanted = expected();
  for (uint64_t row = 0; row < 6; ++row) {
    for (uint64_t y = 0; y < 4; ++y) {
      for (uint64_t x = 0; x < 4; ++x) {
        const bool missing = row >= 4 || (row < 2 && y < 2 && x >= 2);
        if (missing) wanted.replace(((row * 4 + y) * 4 + x) * 2, 2, "ab");
      }
    }
  }
  EXPECT_EQ(read(*file, 0, 1000), wanted);
}

TEST_F(TiledFileTest, ADamagedChunkCostsItsRowsAlone) {
  make(6, {4, 4}, {2, 2, 2}, 2);
  view_.chunks[5].offset = file_.size() - 1;
  const uint64_t row = view_.row_bytes();
  const auto file = open();
  files_.reset_counts();
  EXPECT_EQ(read(*file, 0, 2 * row), expected().substr(0, 2 * row));
  for (int again = 0; again < 3; ++again) {
    EXPECT_THROW((void)read(*file, 2 * row, row), Error);
    EXPECT_THROW((void)read(*file, 3 * row, row), Error);
  }
  EXPECT_EQ(read(*file, 4 * row, 2 * row), expected().substr(4 * row));
  EXPECT_LE(files_.reads(), view_.chunks.size());
}

TEST_F(TiledFileTest, ChunksShorterThanTheirRowsAreDamaged) {
  make(6, {4, 4}, {4, 2, 2}, 2);
  for (TiledView::Chunk& chunk : view_.chunks) chunk.stored_length /= 2;
  const auto file = open();
  EXPECT_THROW((void)read(*file, 0, 1), Error);
  // The last two rows of chunks that would hold four are there.
  EXPECT_EQ(read(*file, 4 * view_.row_bytes(), 1000), expected().substr(4 * view_.row_bytes()));
}

TEST_F(TiledFileTest, ThreadedReadsSeeTheSame) {
  make(64, {16, 16}, {8, 4, 4}, 4);
  const auto file = open({8 * view_.row_bytes(), 4});
  const std::string wanted = expected();
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t row = t; row < 64; row += 4) {
        const uint64_t at = row * view_.row_bytes();
        EXPECT_EQ(read(*file, at, view_.row_bytes()), wanted.substr(at, view_.row_bytes()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace stoker
