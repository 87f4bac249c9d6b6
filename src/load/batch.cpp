// SPDX-License-Identifier: Apache-2.0
#include "load/batch.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "base/bytes.h"
#include "os/pinned_memory.h"

namespace stoker {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = 2 << 20;

}  // namespace

BatchMemory::~BatchMemory() {
  for (const Piece& piece : free_) free(piece);
}

void BatchMemory::free(const Piece& piece) {
  if (piece.pinned) unpin_memory(piece.data);
  std::free(piece.data);
}

std::shared_ptr<std::byte> BatchMemory::take(size_t bytes) {
  bytes = round_up(std::max<size_t>(bytes, 1), kPage);
  Piece piece;
  {
    const std::lock_guard lock(mutex_);
    // The one that came back last: the caches may still have it.
    const auto found = std::find_if(free_.rbegin(), free_.rend(), [&](const Piece& free) {
      return free.size >= bytes && free.size <= 2 * bytes;
    });
    if (found != free_.rend()) {
      piece = *found;
      free_.erase(std::next(found).base());
    }
  }
  if (piece.data == nullptr) {
    const size_t alignment = bytes >= kHugePage ? kHugePage : kPage;
    const size_t size = round_up(bytes, alignment);
    piece = {static_cast<std::byte*>(std::aligned_alloc(alignment, size)), size, false};
    if (piece.data == nullptr) throw std::bad_alloc();
    // Fewer faults where the kernel can; where not, nothing is lost.
    if (alignment == kHugePage) ::madvise(piece.data, piece.size, MADV_HUGEPAGE);
    piece.pinned = pinned_ && pin_memory(piece.data, piece.size);
  }
  return {piece.data, [pool = shared_from_this(), piece](std::byte*) { pool->give_back(piece); }};
}

void BatchMemory::give_back(Piece piece) {
  {
    const std::lock_guard lock(mutex_);
    if (free_.size() < kept_) {
      free_.push_back(piece);
      return;
    }
  }
  free(piece);
}

const BatchColumn* LoadedBatch::find(std::string_view name) const {
  for (const BatchColumn& column : columns) {
    if (column.name == name) return &column;
  }
  return nullptr;
}

void LoadedBatch::keep_rows(const std::vector<uint8_t>& good) {
  uint64_t to = 0;
  for (uint64_t row = 0; row < good.size(); ++row) {
    if (good[row] == 0) continue;
    if (to != row) {
      samples[to] = samples[row];
      for (BatchColumn& column : columns) {
        if (column.data) std::copy_n(column.row(row), column.row_bytes, column.row(to));
        if (!column.values.empty()) column.values[to] = std::move(column.values[row]);
      }
    }
    ++to;
  }
  rows = to;
  samples.resize(to);
  for (BatchColumn& column : columns) {
    if (column.data) column.shape[0] = to;
    if (!column.data) column.values.resize(to);
  }
}

}  // namespace stoker
