// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "os/kept_file.h"

namespace stoker {

/// A file of which every 64 KiB page carries a CRC-32C, read page by page when first touched.
///
/// Not mapped into memory: a mapped file that somebody truncates kills the process, and bytes
/// that were verified could change afterwards. Pages are held until the object ends. No locks, so
/// it works from many threads and after a fork.
class PagedFile {
 public:
  static constexpr uint64_t kPageSize = 65536;

  /// Pages count from `begin`; `checksums` has one per page.
  PagedFile(std::unique_ptr<KeptFile> file, uint64_t begin, uint64_t size,
            std::vector<uint32_t> checksums);
  ~PagedFile();
  PagedFile(const PagedFile&) = delete;
  PagedFile& operator=(const PagedFile&) = delete;

  /// Copies bytes that may lie across pages. `offset` counts from `begin`.
  /// Throws Error(corrupt) where a checksum differs or the range lies outside.
  void read(uint64_t offset, MutableBytes into) const;
  /// The same for a value of fixed size, which mostly lies within one page that is there.
  template <typename T>
  T read(uint64_t offset) const {
    const uint64_t within = offset % kPageSize;
    if (offset < size_ && sizeof(T) <= size_ - offset && within <= kPageSize - sizeof(T)) {
      const std::byte* loaded = pages_[offset / kPageSize].load(std::memory_order_acquire);
      if (loaded != nullptr) return load<T>(loaded + within);
    }
    T value;
    read(offset, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  /// Says that it will be read soon. Costs nothing where it lies outside or is not loaded yet.
  void prefetch(uint64_t offset) const {
    if (offset >= size_) return;
    const std::byte* loaded = pages_[offset / kPageSize].load(std::memory_order_acquire);
    if (loaded != nullptr) __builtin_prefetch(loaded + offset % kPageSize);
  }

 private:
  const std::byte* page(uint64_t number) const;

  std::unique_ptr<KeptFile> file_;
  uint64_t begin_;
  uint64_t size_;
  std::vector<uint32_t> checksums_;
  mutable std::vector<std::atomic<const std::byte*>> pages_;
};

}  // namespace stoker
