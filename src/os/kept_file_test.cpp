// SPDX-License-Identifier: Apache-2.0
#include "os/kept_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "os/output_file.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

/// How many descriptors this process has.
size_t open_files() {
  return static_cast<size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), {}));
}

class KeptFileTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(directory_);
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    struct rlimit few = before_;
    few.rlim_cur = std::min<rlim_t>(before_.rlim_cur, 256);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int i = 0; i < kFiles; ++i)
      write_file(path(i), as_bytes("contents " + std::to_string(i)), 0);
  }
  void TearDown() override {
    ::setrlimit(RLIMIT_NOFILE, &before_);
    fs::remove_all(directory_);
  }

  std::string path(int i) const { return (directory_ / std::to_string(i)).string(); }
  std::vector<std::unique_ptr<KeptFile>> open_all() const {
    std::vector<std::unique_ptr<KeptFile>> files;
    for (int i = 0; i < kFiles; ++i) {
      files.push_back(std::make_unique<KeptFile>(path(i)));
      files.back()->settle();
    }
    return files;
  }
  static std::string read(const KeptFile& file) {
    std::string text(file.info().size, ' ');
    text.resize(file.read_at(0, std::as_writable_bytes(std::span(text))));
    return text;
  }

  static constexpr int kFiles = 400;
  fs::path directory_ = fs::path(testing::TempDir()) / ("kept-" + std::to_string(::getpid()));
  struct rlimit before_ {};
};

TEST_F(KeptFileTest, KeepsFewOpenAndReadsAll) {
  const size_t before = open_files();
  const auto files = open_all();
  EXPECT_GT(open_files(), before);
  EXPECT_LE(open_files(), before + 256 / 8);
  for (int i = 0; i < kFiles; ++i) {
    EXPECT_EQ(read(*files[static_cast<size_t>(i)]), "contents " + std::to_string(i));
  }
}

TEST_F(KeptFileTest, OthersStayOpenInThePlaceOfThoseThatAreGone) {
  const size_t before = open_files();
  for (int round = 0; round < 3; ++round) {
    const auto files = open_all();
    EXPECT_EQ(open_files(), before + 256 / 8);
  }
  EXPECT_EQ(open_files(), before);
}

TEST_F(KeptFileTest, AFileThatIsGoneIsNotFoundUnlessItIsKeptOpen) {
  const auto files = open_all();
  fs::remove_all(directory_);
  EXPECT_EQ(read(*files.front()), "contents 0");
  EXPECT_THROW(read(*files.back()), Error);
}

}  // namespace
}  // namespace stoker
