// SPDX-License-Identifier: Apache-2.0
#include "stage/shard_copy.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "os/fake_file_system.h"
#include "os/output_file.h"
#include "os/page_cache.h"
#include "os/scratch_directory.h"

namespace stoker {
namespace {

class ShardCopy : public testing::Test {
 protected:
  ShardCopy() {
    for (size_t i = 0; i < contents_.size(); ++i) contents_[i] = static_cast<char>(i * 31 % 251);
    files_.add_file("/data/s.tar", contents_);
    shard_.path = "s.tar";
    shard_.size = contents_.size();
    shard_.modified_ns = 1;
    shard_.ranges = {{0, kCut, crc(0, kCut)}, {kCut, shard_.size, crc(kCut, shard_.size)}};
  }

  uint32_t crc(size_t begin, size_t end) const {
    return crc32c(as_bytes(std::string_view(contents_).substr(begin, end - begin)));
  }
  CopiedShard copy(unsigned threads = 1) {
    const std::string path = copy_path();
    const int to = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    try {
      const CopiedShard copied = copy_shard(files_, "/data", shard_, to, path, {threads, nullptr});
      ::close(to);
      return copied;
    } catch (...) {
      ::close(to);
      throw;
    }
  }
  std::string copied() const { return read_file(copy_path(), 1 << 30); }
  std::string copy_path() const { return scratch_.path() + "/copy"; }

  static constexpr size_t kCut = 5'000'001;
  std::string contents_ = std::string(13'000'003, '\0');
  FakeFileSystem files_;
  ShardToStage shard_;
  ScratchDirectory scratch_;
};

TEST_F(ShardCopy, CopiesAndCompares) {
  const CopiedShard done = copy();
  EXPECT_TRUE(done.matches);
  EXPECT_EQ(done.crc, crc(0, contents_.size()));
  EXPECT_EQ(copied(), contents_);
}

TEST_F(ShardCopy, ThreadedGivesTheSame) {
  const CopiedShard done = copy(4);
  EXPECT_TRUE(done.matches);
  EXPECT_EQ(done.crc, crc(0, contents_.size()));
  EXPECT_EQ(copied(), contents_);
}

// On a disk of this machine, which /var/tmp is on most: other file systems are read as ever.
TEST_F(ShardCopy, ThreadedReadingPastThePageCacheGivesTheSame) {
  std::string directory = "/var/tmp/stoker-shard-copy-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const std::string path = directory + "/s.tar";
  write_file(path, as_bytes(contents_));
  const int source = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int to = ::open(copy_path().c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  shard_.modified_ns = 0;
  for (const unsigned threads : {1U, 4U}) {
    struct stat status {};
    ASSERT_EQ(::fstat(source, &status), 0);
    const bool direct = major(status.st_dev) != 0 && drop_from_page_cache(source).cached == 0;
    const CopiedShard done =
        copy_shard(real_file_system(), directory, shard_, to, copy_path(), {threads, nullptr});
    EXPECT_TRUE(done.matches);
    EXPECT_EQ(done.crc, crc(0, contents_.size()));
    EXPECT_EQ(copied(), contents_);
    if (direct) {
      EXPECT_EQ(cached_bytes(source, 0, contents_.size()), 0U) << "read past the page cache";
    }
  }
  ::close(source);
  ::close(to);
  std::filesystem::remove_all(directory);
}

TEST_F(ShardCopy, SeesAnotherByte) {
  contents_[kCut + 7] ^= 1;
  files_.add_file("/data/s.tar", contents_);
  EXPECT_FALSE(copy().matches);
}

TEST_F(ShardCopy, RefusesWhatWasNotIndexed) {
  shard_.size += 1;
  EXPECT_THROW(copy(), Error);
  shard_.size -= 1;
  shard_.ranges.clear();
  EXPECT_TRUE(copy().matches);
  shard_.modified_ns = 2;  // and there is no checksum
  EXPECT_THROW(copy(), Error);
}

TEST_F(ShardCopy, NamesAFileThatBecomesShorter) {
  files_.end_reads_at("/data/s.tar", kCut + 1);
  try {
    copy();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    EXPECT_NE(std::string(error.what()).find("s.tar: changed while"), std::string::npos);
  }
}

TEST_F(ShardCopy, PassesOnWhatTheDiskSays) {
  files_.fail_read("/data/s.tar", kCut, EIO);
  try {
    copy();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.os_error(), EIO);
  }
}

}  // namespace
}  // namespace stoker
