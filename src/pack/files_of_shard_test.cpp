// SPDX-License-Identifier: Apache-2.0
#include "pack/files_of_shard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "os/scratch_directory.h"

namespace stoker {
namespace {

TEST(FilesOfShard, ThreadedWritingKeepsTheOrder) {
  const ScratchDirectory scratch;
  for (const bool own_thread : {false, true}) {
    FilesOfShard files({scratch.path() + "/a", scratch.path() + "/b"}, own_thread);
    ShardOutput out(2);
    std::string expected;
    for (int i = 0; i < 300; ++i) {
      const std::string text = std::to_string(i) + std::string(static_cast<size_t>(i) * 100, 'x');
      expected += text;
      out.append(0, as_bytes(text));
      if (i % 3 == 0) out.append(1, as_bytes("b"));
      if (i % 2 == 0) files.write(out);
    }
    files.write(out);
    files.wait();
    files.file(0).commit();
    files.file(1).commit();
    EXPECT_EQ(read_file(scratch.path() + "/a", 1 << 30), expected) << own_thread;
    EXPECT_EQ(read_file(scratch.path() + "/b", 1 << 30), std::string(100, 'b')) << own_thread;
  }
}

TEST(FilesOfShard, ThreadedWritingSaysWhatWentWrong) {
  const ScratchDirectory scratch;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little = {1 << 20, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  {
    FilesOfShard files({scratch.path() + "/a"}, true);
    ShardOutput out(1);
    const auto write_much = [&] {
      for (int i = 0; i < 100; ++i) {
        out.append(0, as_bytes(std::string(100'000, 'x')));
        files.write(out);
      }
      files.wait();
    };
    EXPECT_THROW(write_much(), Error);
    EXPECT_THROW(files.wait(), Error) << "once failed, it stays so";
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  (void)std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path())) << "nothing is left behind";
}

TEST(FilesOfShard, ThreadedWritingMayBeGivenUp) {
  const ScratchDirectory scratch;
  {
    FilesOfShard files({scratch.path() + "/a"}, true);
    ShardOutput out(1);
    out.append(0, as_bytes("begun"));
    files.write(out);
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
}

}  // namespace
}  // namespace stoker
