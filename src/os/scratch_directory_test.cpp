// SPDX-License-Identifier: Apache-2.0
#include "os/scratch_directory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <optional>

namespace stoker {
namespace {

namespace fs = std::filesystem;

class Scratch : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* before = ::getenv("TMPDIR")) before_ = before;
    ::setenv("TMPDIR", outer_.path().c_str(), 1);
  }
  void TearDown() override {
    before_ ? ::setenv("TMPDIR", before_->c_str(), 1) : ::unsetenv("TMPDIR");
  }
  size_t count() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(outer_.path()), fs::directory_iterator()));
  }

  ScratchDirectory outer_;
  std::optional<std::string> before_;
};

/// A process that makes a directory, says where, and waits to be killed.
struct Maker {
  Maker() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    child = ::fork();
    if (child == 0) {
      const ScratchDirectory made;
      std::ofstream(made.path() + "/file") << "left";
      (void)!::write(ends[1], "x", 1);
      for (;;) ::pause();
    }
    char made = 0;
    EXPECT_EQ(::read(ends[0], &made, 1), 1);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  void kill() const {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  pid_t child = 0;
};

TEST_F(Scratch, WhatAKilledProcessLeftIsRemovedByTheNext) {
  const Maker maker;
  remove_abandoned_scratch();
  EXPECT_EQ(count(), 1U) << "its maker lives";
  maker.kill();
  EXPECT_EQ(count(), 1U);
  const ScratchDirectory next;
  EXPECT_EQ(count(), 1U);
  EXPECT_TRUE(fs::exists(next.path()));
}

TEST_F(Scratch, OnlyDirectoriesOfDeadProcessesAndNoLinks) {
  const Maker maker;
  const fs::path left = fs::directory_iterator(outer_.path())->path();
  maker.kill();
  // A link to it under the name of another dead one; what lies elsewhere stays.
  const ScratchDirectory elsewhere;
  EXPECT_FALSE(fs::exists(left));
  std::ofstream(elsewhere.path() + "/precious") << "keep";
  fs::create_directory_symlink(elsewhere.path(), left);
  std::ofstream(outer_.path() + "/stoker-scratch-file") << "";
  fs::create_directory(outer_.path() + "/stoker-1000");
  fs::create_directory(outer_.path() + "/stoker-scratch-of-my-own");
  fs::create_directory(outer_.path() + "/stoker-scratch-of,another,host,1,1-abcdef");
  remove_abandoned_scratch();
  EXPECT_TRUE(fs::exists(elsewhere.path() + "/precious"));
  EXPECT_TRUE(fs::is_symlink(left));
  EXPECT_EQ(count(), 6U);
}

}  // namespace
}  // namespace stoker
