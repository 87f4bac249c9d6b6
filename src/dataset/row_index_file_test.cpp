// SPDX-License-Identifier: Apache-2.0
#include "dataset/row_index_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kSegment = 0x1234abcd;
const std::vector<std::string> kRows = {"first", "", "a longer one", "", "x"};

class RowIndexFileTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) /
                 fmt::format("rows-{}-{}", ::getpid(),
                             testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(directory_);
    path_ = row_index_path((directory_ / "a.tar.000.1234abcd.seg").string());
  }
  void TearDown() override { fs::remove_all(directory_); }

  void write() const {
    RowIndexFileWriter writer(path_, kSegment, kRows.size(), 0);
    for (const std::string& row : kRows) writer.add(as_bytes(row));
    RowIndexFacts facts{3, 16, 1000, {}};
    facts.photos[0] = 3;
    facts.photos[4] = 2;
    writer.commit(facts);
  }
  RowIndexFile open() const { return {path_, kSegment, kRows.size()}; }
  std::string contents() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void replace(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }
  static std::string read(const RowIndexFile& file, uint64_t first, size_t length) {
    std::string bytes(length, '\0');
    EXPECT_TRUE(file.read(first, std::as_writable_bytes(std::span(bytes))));
    return bytes;
  }

  fs::path directory_;
  std::string path_;
};

TEST_F(RowIndexFileTest, LiesBesideItsSegment) {
  EXPECT_EQ(path_, (directory_ / "a.tar.000.1234abcd.rows").string());
}

TEST_F(RowIndexFileTest, RoundTrip) {
  write();
  const RowIndexFile file = open();
  EXPECT_EQ(file.facts().field, 3U);
  EXPECT_EQ(file.facts().every, 16U);
  EXPECT_EQ(file.facts().photo_bytes, 1000U);
  EXPECT_EQ(file.facts().photos[0], 3U);
  EXPECT_EQ(file.facts().photos[4], 2U);
  for (uint64_t i = 0; i < kRows.size(); ++i) {
    EXPECT_EQ(file.length(i), kRows[i].size());
    EXPECT_EQ(read(file, i, kRows[i].size()), kRows[i]);
  }
  EXPECT_EQ(read(file, 0, file.bytes()), "firsta longer onex");
  file.verify_all();
}

TEST_F(RowIndexFileTest, OfNoSamples) {
  RowIndexFileWriter(path_, kSegment, 0, 0).commit({});
  const RowIndexFile file(path_, kSegment, 0);
  EXPECT_EQ(file.bytes(), 0U);
  file.verify_all();
}

TEST_F(RowIndexFileTest, ThereWhenWholeOnly) {
  {
    RowIndexFileWriter writer(path_, kSegment, 2, 0);
    writer.add(as_bytes("one"));
  }
  EXPECT_TRUE(fs::is_empty(directory_));
  EXPECT_THROW(open(), Error);
}

TEST_F(RowIndexFileTest, OfAnotherSegment) {
  write();
  EXPECT_THROW(RowIndexFile(path_, kSegment + 1, kRows.size()), Error);
  EXPECT_THROW(RowIndexFile(path_, kSegment, kRows.size() + 1), Error);
}

TEST_F(RowIndexFileTest, TruncatedAnywhere) {
  write();
  const std::string whole = contents();
  for (size_t size = 0; size < whole.size(); ++size) {
    replace(whole.substr(0, size));
    EXPECT_THROW(open(), Error) << size;
  }
  replace(whole + "x");
  EXPECT_THROW(open(), Error);
}

// Behind what says where they lie each row index has a checksum of its own; all of them have one
// for who verifies the whole file.
TEST_F(RowIndexFileTest, EveryFlippedBitIsNoticed) {
  write();
  const std::string whole = contents();
  const size_t data = whole.size() - open().bytes();
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    replace(damaged);
    if (bit / 8 < data) {
      EXPECT_THROW(open(), Error) << bit;
    } else {
      EXPECT_THROW(open().verify_all(), Error) << bit;
    }
  }
}

TEST_F(RowIndexFileTest, CutWhileOpen) {
  write();
  const RowIndexFile file = open();
  fs::resize_file(path_, fs::file_size(path_) - 1);
  std::string bytes(1, '\0');
  EXPECT_FALSE(file.read(4, std::as_writable_bytes(std::span(bytes))));
}

}  // namespace
}  // namespace stoker
