// SPDX-License-Identifier: Apache-2.0
#include "array_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <new>

#include "base/bytes.h"

namespace stoker::python {
namespace {

// What NumPy aligns its own memory to, and what any element type is content with. As many bytes in
// front of the memory hold its size.
constexpr size_t kAlignment = 64;
constexpr size_t kMaxKept = 64 << 20;
// Below this malloc is quick by itself.
constexpr size_t kWorthKeeping = 16 << 10;

struct Spare {
  std::multimap<size_t, std::byte*> by_size;
  size_t bytes = 0;
};

/// Never destroyed: arrays may outlive everything else.
Spare& spare() {
  static Spare& all = *new Spare;
  return all;
}

size_t& size_of(std::byte* memory) { return *reinterpret_cast<size_t*>(memory - kAlignment); }

}  // namespace

void give_back(void* memory) noexcept {
  auto* const begin = static_cast<std::byte*>(memory);
  const size_t size = size_of(begin);
  Spare& kept = spare();
  if (size >= kWorthKeeping && size <= kMaxKept - std::min(kept.bytes, kMaxKept)) {
    try {
      kept.by_size.emplace(size, begin);
      kept.bytes += size;
      return;
    } catch (const std::bad_alloc&) {
      // Not kept, then.
    }
  }
  std::free(begin - kAlignment);
}

ArrayMemory array_memory(size_t size) {
  if (size > static_cast<size_t>(PTRDIFF_MAX) - 2 * kAlignment) throw std::bad_alloc();
  const size_t rounded = round_up(std::max<size_t>(size, 1), kAlignment);
  Spare& kept = spare();
  const auto fitting = kept.by_size.lower_bound(rounded);
  if (fitting != kept.by_size.end() && fitting->first / 2 <= rounded) {
    // Of those of this size the one that came last: it may still be in the core's cache.
    const auto last = std::prev(kept.by_size.upper_bound(fitting->first));
    ArrayMemory memory(last->second);
    kept.bytes -= last->first;
    kept.by_size.erase(last);
    return memory;
  }
  auto* const begin = static_cast<std::byte*>(std::aligned_alloc(kAlignment, kAlignment + rounded));
  if (begin == nullptr) throw std::bad_alloc();
  ArrayMemory memory(begin + kAlignment);
  size_of(memory.get()) = rounded;
  return memory;
}

}  // namespace stoker::python
