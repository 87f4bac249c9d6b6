// SPDX-License-Identifier: Apache-2.0
#include "results/column_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/json.h"
#include "os/output_file.h"

namespace stoker {
namespace {

std::string contents(const std::string& path) { return read_file(path, 1 << 20); }

void overwrite(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

class ColumnFile : public ::testing::Test {
 protected:
  /// Three blocks of two rows.
  void SetUp() override {
    path_ = scratch_ + "/steps";
    std::filesystem::create_directories(scratch_);
    std::filesystem::remove(path_);
    ColumnWriter writer(path_, {"end_ns", "samples"}, {"gpu_s"});
    writer.describe("rank", 3);
    for (int64_t i = 0; i < 6; ++i) {
      const int64_t integers[] = {i * 100, 256};
      const double reals[] = {static_cast<double>(i) / 2};
      writer.add(integers, reals);
      if (i % 2 == 1) writer.flush();
    }
    EXPECT_EQ(writer.failure(), "");
  }

  std::string scratch_ = ::testing::TempDir() + "stoker_column_file";
  std::string path_;
};

TEST_F(ColumnFile, GivesBackWhatWasWritten) {
  const ColumnTable table = read_columns(path_);
  EXPECT_EQ(table.rows, 6U);
  EXPECT_EQ(table.integers.at("end_ns"), (std::vector<int64_t>{0, 100, 200, 300, 400, 500}));
  EXPECT_EQ(table.reals.at("gpu_s"), (std::vector<double>{0, 0.5, 1, 1.5, 2, 2.5}));
  EXPECT_EQ(table.about.at("rank"), "3");
  EXPECT_TRUE(table.damage.empty());
}

TEST_F(ColumnFile, CutAnywhereKeepsTheBlocksBeforeIt) {
  const std::string whole = contents(path_);
  size_t most = 0;
  size_t at_the_end_of_a_block = 0;
  for (size_t length = 17; length < whole.size(); ++length) {
    overwrite(path_, whole.substr(0, length));
    const ColumnTable table = read_columns(path_);
    EXPECT_EQ(table.rows % 2, 0U);
    EXPECT_GE(table.rows, most) << length;
    most = table.rows;
    EXPECT_LT(table.rows, 6U);
    EXPECT_LE(table.damage.size(), 1U);
    if (table.damage.empty()) ++at_the_end_of_a_block;
  }
  EXPECT_EQ(most, 4U);
  EXPECT_EQ(at_the_end_of_a_block, 3U);  // of none, of the first, of the second
}

TEST_F(ColumnFile, AGrowingFileIsFollowed) {
  const std::string whole = contents(path_);
  uint64_t offset = 0;
  std::vector<int64_t> seen;
  for (size_t length = 0; length <= whole.size(); length += 7) {
    overwrite(path_, whole.substr(0, std::min(length, whole.size())));
    const ColumnTable table = read_new_columns(path_, offset);
    const auto found = table.integers.find("end_ns");
    if (found != table.integers.end()) {
      seen.insert(seen.end(), found->second.begin(), found->second.end());
    }
  }
  overwrite(path_, whole);
  const ColumnTable rest = read_new_columns(path_, offset);
  const auto found = rest.integers.find("end_ns");
  if (found != rest.integers.end()) {
    seen.insert(seen.end(), found->second.begin(), found->second.end());
  }
  EXPECT_EQ(seen, (std::vector<int64_t>{0, 100, 200, 300, 400, 500}));
  EXPECT_EQ(offset, whole.size());
}

TEST_F(ColumnFile, AFlippedBitCostsOneBlockAtMost) {
  const std::string whole = contents(path_);
  for (size_t at = 17; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    overwrite(path_, bytes);
    const ColumnTable table = read_columns(path_);
    EXPECT_EQ(table.rows, 4U) << at;
    ASSERT_EQ(table.damage.size(), 1U) << at;
    EXPECT_GE(at, table.damage[0].offset);
  }
}

TEST_F(ColumnFile, OtherFilesAreRefused) {
  overwrite(path_, "PK\3\4 something else");
  EXPECT_THROW(read_columns(path_), Error);
  overwrite(path_, "");
  EXPECT_THROW(read_columns(path_), Error);
  overwrite(path_, "stoker-columns 2\n");
  EXPECT_THROW(read_columns(path_), Error);
}

TEST_F(ColumnFile, AbsurdLengthsTakeNoMemory) {
  std::string bytes = "stoker-columns 1\nSBLK";
  bytes += std::string(12, '\xFF');
  bytes += std::string(100, 'x');
  overwrite(path_, bytes);
  const ColumnTable table = read_columns(path_);
  EXPECT_EQ(table.rows, 0U);
  EXPECT_EQ(table.damage.size(), 1U);
}

TEST_F(ColumnFile, AFullDiskIsSaidAndHarmless) {
  std::filesystem::remove(path_);
  ColumnWriter writer(path_, {"a"}, {});
  // As if the disk were full: no file may grow beyond this.
  (void)std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{20, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const int64_t value = 1;
  writer.add(&value, nullptr);
  writer.flush();
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_NE(writer.failure(), "");
  writer.add(&value, nullptr);
  writer.flush();
  EXPECT_EQ(read_columns(path_).rows, 0U);
}

}  // namespace
}  // namespace stoker
