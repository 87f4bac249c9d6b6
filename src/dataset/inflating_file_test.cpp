// SPDX-License-Identifier: Apache-2.0
#include "dataset/inflating_file.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include "base/error.h"
#include "os/fake_file_system.h"

namespace stoker {
namespace {

std::string deflate_text(const std::string& text, int window_bits) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(text.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}
std::string gzip(const std::string& text) { return deflate_text(text, 15 + 16); }
std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 1));
  return out;
}

std::string long_text() {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i * 7919);
  return text;
}

std::string read_back(const std::string& stored, uint64_t offset, size_t size) {
  FakeFileSystem files;
  files.add_file("/a", stored);
  const Compression kind = compression_of(as_bytes(stored));
  EXPECT_NE(kind, Compression::none);
  const auto file = inflate(files.open("/a"), "/a", kind);
  std::string out(size, '\0');
  size_t done = 0;
  while (done < size) {  // bytes before damage come first, then the error
    const size_t got =
        file->read_at(offset + done, std::as_writable_bytes(std::span(out)).subspan(done));
    if (got == 0) break;
    done += got;
  }
  out.resize(done);
  return out;
}

TEST(InflatingFile, ReadsGzipZlibAndZstd) {
  const std::string text = long_text();
  for (const std::string& stored : {gzip(text), deflate_text(text, 15), zstd(text)}) {
    EXPECT_EQ(read_back(stored, 0, text.size() + 10), text);
    EXPECT_EQ(read_back(stored, 300'000, 50), text.substr(300'000, 50));
    EXPECT_EQ(read_back(stored, text.size() + 5, 50), "");
  }
}

TEST(InflatingFile, SeveralMembersFollowEachOther) {
  EXPECT_EQ(read_back(gzip("one,") + gzip("") + gzip("two"), 0, 100), "one,two");
  EXPECT_EQ(read_back(zstd("one,") + zstd("two"), 0, 100), "one,two");
}

TEST(InflatingFile, GoesBackward) {
  FakeFileSystem files;
  const std::string text = long_text();
  files.add_file("/a", gzip(text));
  const auto file = inflate(files.open("/a"), "/a", Compression::gzip);
  std::string out(100, '\0');
  for (const uint64_t offset : {400'000, 10, 250'000}) {
    EXPECT_EQ(file->read_at(offset, std::as_writable_bytes(std::span(out))), 100U);
    EXPECT_EQ(out, text.substr(offset, 100));
  }
}

TEST(InflatingFile, TruncatedOrDamagedIsAnError) {
  const std::string text = long_text();
  for (std::string stored : {gzip(text), zstd(text)}) {
    for (const size_t size : {stored.size() - 1, stored.size() / 2, size_t{10}}) {
      EXPECT_THROW(read_back(stored.substr(0, size), 0, text.size() + 1), Error) << size;
    }
    stored[stored.size() / 2] = static_cast<char>(stored[stored.size() / 2] ^ 0x10);
    std::string got;
    try {
      got = read_back(stored, 0, text.size() + 1);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    }
    EXPECT_NE(got, text);
  }
}

}  // namespace
}  // namespace stoker
