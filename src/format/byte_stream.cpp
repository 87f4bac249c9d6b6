// SPDX-License-Identifier: Apache-2.0
#include "format/byte_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace stoker {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kSmallestRead = kPage;
// What is read should still lie in the cache of a core when it is looked at.
constexpr size_t kLargestRead = 256 * 1024;
// A skip for which another read costs less than copying the bytes between.
constexpr uint64_t kLongSkip = 32 * 1024;

}  // namespace

ByteStream::ByteStream(ReadableFile& file, std::string path, Compression compression)
    : file_(file),
      path_(std::move(path)),
      compressed_(compression != Compression::none),
      file_size_(compressed_ ? 0 : file.info().size),
      next_read_(compressed_ ? kLargestRead : kSmallestRead) {}

uint64_t ByteStream::skip_counting(uint64_t size) {
  const uint64_t begin = offset_;
  skip(size);
  if (compressed_) read_on_to(offset_);
  const uint64_t end = compressed_ ? window_begin_ + window_size_ : file_size_;
  return std::min(size, end <= begin ? 0 : end - begin);
}

Bytes ByteStream::fill(size_t size) {
  if (offset_ >= kFarthest) return {};
  if (compressed_) read_on_to(offset_);
  const uint64_t window_end = window_begin_ + window_size_;
  if (offset_ <= window_end) {
    // What the window still holds is kept and not read again: a compressed file would have to
    // begin anew for it.
    const size_t passed = offset_ - window_begin_;
    window_size_ -= passed;
    if (passed > 0) std::memmove(window_.data(), window_.data() + passed, window_size_);
    window_begin_ = offset_;
  } else if (compressed_) {
    return {};  // behind the end
  } else {
    if (offset_ - window_end > kLongSkip) next_read_ = kSmallestRead;
    window_begin_ = offset_;
    window_size_ = 0;
  }
  read_window(size);
  return Bytes(window_).first(std::min(size, window_size_));
}

/// Moves the window on until it reaches `offset` or the end of the file.
void ByteStream::read_on_to(uint64_t offset) {
  while (window_begin_ + window_size_ < offset && !at_end_) {
    window_begin_ += window_size_;
    window_size_ = 0;
    read_window(1);
  }
}

/// Appends to the window until it has `wanted` bytes or the file ends.
void ByteStream::read_window(size_t wanted) {
  while (window_size_ < wanted && !at_end_) {
    const uint64_t from = window_begin_ + window_size_;
    const uint64_t until = round_up(from + std::max(next_read_, wanted - window_size_), kPage);
    if (window_.size() < window_size_ + (until - from)) {
      window_.resize(window_size_ + (until - from));
    }
    const size_t got =
        file_.read_at(from, MutableBytes(window_).subspan(window_size_, until - from));
    window_size_ += got;
    at_end_ = got == 0;
    next_read_ = std::min(next_read_ * 2, kLargestRead);
  }
}

}  // namespace stoker
