// SPDX-License-Identifier: Apache-2.0
#include "dataset/paged_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/text.h"

namespace stoker {

PagedFile::PagedFile(std::unique_ptr<KeptFile> file, uint64_t begin, uint64_t size,
                     std::vector<uint32_t> checksums)
    : file_(std::move(file)),
      begin_(begin),
      size_(size),
      checksums_(std::move(checksums)),
      pages_(checksums_.size()) {
  file_->settle();
}

PagedFile::~PagedFile() {
  for (auto& page : pages_) delete[] page.load(std::memory_order_acquire);
}

void PagedFile::read(uint64_t offset, MutableBytes into) const {
  if (offset > size_ || into.size() > size_ - offset) {
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: refers to bytes {} to {} of {}: run stoker index",
                            printable(file_->path()), offset, offset + into.size(), size_));
  }
  size_t done = 0;
  while (done < into.size()) {
    const uint64_t at = offset + done;
    const uint64_t within = at % kPageSize;
    const size_t count = std::min<uint64_t>(into.size() - done, kPageSize - within);
    std::memcpy(into.data() + done, page(at / kPageSize) + within, count);
    done += count;
  }
}

const std::byte* PagedFile::page(uint64_t number) const {
  std::atomic<const std::byte*>& slot = pages_[number];
  const std::byte* loaded = slot.load(std::memory_order_acquire);
  if (loaded != nullptr) return loaded;

  const uint64_t offset = number * kPageSize;
  const size_t size = std::min<uint64_t>(kPageSize, size_ - offset);
  auto bytes = std::make_unique<std::byte[]>(size);
  const MutableBytes into(bytes.get(), size);
  const size_t got = file_->read_at(begin_ + offset, into);
  if (got != size || crc32c(into) != checksums_[number]) {
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: offset {}: the index is damaged ({}): run stoker index",
                            printable(file_->path()), begin_ + offset,
                            got == size ? "checksum differs" : "file is truncated"));
  }
  // Whoever comes second throws its copy away.
  if (slot.compare_exchange_strong(loaded, bytes.get(), std::memory_order_acq_rel)) {
    return bytes.release();
  }
  return loaded;
}

}  // namespace stoker
