// SPDX-License-Identifier: Apache-2.0
#include "format/byte_stream.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "base/error.h"
#include "os/fake_file_system.h"

namespace stoker {
namespace {

std::string numbered(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7 + i / 251);
  return text;
}

class ByteStreamTest : public testing::Test {
 protected:
  void make(size_t size) {
    text_ = numbered(size);
    files_.add_file("/f", text_);
    file_ = files_.open("/f");
  }

  FakeFileSystem files_;
  std::string text_;
  std::unique_ptr<ReadableFile> file_;
};

TEST_F(ByteStreamTest, GivesEveryByteInAnyPieces) {
  make(1'000'000);
  for (const Compression compression : {Compression::none, Compression::gzip}) {
    for (const size_t step : {1000U, 4096U, 77777U}) {
      ByteStream stream(*file_, "/f", compression);
      while (stream.offset() < text_.size()) {
        const std::string_view wanted = std::string_view(text_).substr(stream.offset(), step);
        ASSERT_EQ(as_text(stream.peek(step)), wanted) << stream.offset();
        stream.skip(step / 2);
      }
    }
  }
}

TEST_F(ByteStreamTest, NothingIsReadTwice) {
  make(1'000'000);
  ByteStream stream(*file_, "/f");
  while (!stream.peek(512).empty()) stream.skip(300);
  EXPECT_EQ(files_.bytes_read(), text_.size());
  EXPECT_LT(files_.reads(), 20U);
}

TEST_F(ByteStreamTest, LongSkipsAreNotRead) {
  make(10'000'000);
  ByteStream stream(*file_, "/f");
  int looked_at = 0;
  for (; stream.peek(512).size() == 512; ++looked_at) stream.skip(100'000);
  EXPECT_EQ(looked_at, 100);
  EXPECT_LE(files_.bytes_read(), 100U * 2 * 4096);
}

TEST_F(ByteStreamTest, WithinACompressedFileEverythingIsRead) {
  make(1'000'000);
  ByteStream stream(*file_, "/f", Compression::gzip);
  stream.peek(512);
  EXPECT_EQ(stream.skip_counting(900'000), 900'000U);
  EXPECT_EQ(as_text(stream.peek(512)), text_.substr(900'000, 512));
  EXPECT_EQ(stream.skip_counting(200'000), 100'000U);
  EXPECT_TRUE(stream.peek(1).empty());
  EXPECT_EQ(files_.bytes_read(), text_.size());
}

TEST_F(ByteStreamTest, CountsWhatIsThere) {
  make(1000);
  ByteStream stream(*file_, "/f");
  EXPECT_EQ(stream.skip_counting(400), 400U);
  EXPECT_EQ(stream.skip_counting(600), 600U);
  EXPECT_EQ(stream.skip_counting(0), 0U);
  EXPECT_EQ(stream.skip_counting(~uint64_t{0}), 0U);
  EXPECT_TRUE(stream.peek(1).empty());
  EXPECT_EQ(files_.reads(), 0U);
}

TEST_F(ByteStreamTest, HugeSkipsEndBehindTheFile) {
  make(1000);
  for (const Compression compression : {Compression::none, Compression::gzip}) {
    ByteStream stream(*file_, "/f", compression);
    stream.peek(10);
    EXPECT_EQ(stream.skip_counting(~uint64_t{0}), 1000U);
    stream.skip(~uint64_t{0});
    EXPECT_TRUE(stream.peek(512).empty());
  }
}

TEST_F(ByteStreamTest, FileThatEndsEarly) {
  make(100'000);
  files_.end_reads_at("/f", 50'100);
  ByteStream stream(*file_, "/f");
  stream.skip(50'000);
  EXPECT_EQ(stream.peek(512).size(), 100U);
  EXPECT_EQ(stream.peek(50).size(), 50U);
}

TEST_F(ByteStreamTest, FailuresOfTheSystemAreThrown) {
  make(100'000);
  files_.fail_read("/f", 60'000, EIO);
  ByteStream stream(*file_, "/f");
  EXPECT_EQ(stream.peek(512).size(), 512U);
  stream.skip(59'900);
  EXPECT_THROW(stream.peek(512), Error);
}

TEST_F(ByteStreamTest, EmptyFile) {
  make(0);
  ByteStream stream(*file_, "/f");
  EXPECT_TRUE(stream.peek(512).empty());
  EXPECT_EQ(stream.skip_counting(1), 0U);
}

}  // namespace
}  // namespace stoker
