// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "dataset/extent.h"
#include "os/file_system.h"

namespace stoker {

/// Walks through a file front to back: small reads are served from a window, skipped bytes are
/// not read where the file allows it. The window grows as long as what is looked at lies close
/// together, and shrinks behind a long skip.
class ByteStream {
 public:
  /// Of a compressed file nobody knows the size before its end: there, skipped bytes are read.
  ByteStream(ReadableFile& file, std::string path, Compression compression = Compression::none);

  const std::string& path() const { return path_; }
  uint64_t offset() const { return offset_; }
  /// The next `size` bytes, or fewer at the end of the file. Valid until the next call.
  Bytes peek(size_t size) {
    // offset_ never lies before the window.
    const uint64_t ahead = offset_ - window_begin_;
    if (ahead > window_size_ || size > window_size_ - ahead) return fill(size);
    return {window_.data() + ahead, size};
  }
  void skip(uint64_t size) { offset_ += std::min(size, kFarthest - offset_); }
  /// The same, and returns how many of these bytes the file has: all, unless it ends before.
  uint64_t skip_counting(uint64_t size);

 private:
  static constexpr uint64_t kFarthest = uint64_t{1} << 62;  // no file has as many bytes

  Bytes fill(size_t size);
  void read_on_to(uint64_t offset);
  void read_window(size_t wanted);

  ReadableFile& file_;
  std::string path_;
  bool compressed_;
  uint64_t file_size_;  // where not compressed
  uint64_t offset_ = 0;
  std::vector<std::byte> window_;
  uint64_t window_begin_ = 0;
  size_t window_size_ = 0;
  size_t next_read_;
  bool at_end_ = false;  // the window reaches to the end of the file
};

}  // namespace stoker
