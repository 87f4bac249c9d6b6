// SPDX-License-Identifier: Apache-2.0
#include "base/freed_memory.h"

#include <cstddef>
#include <cstdlib>

namespace stoker {

// glibc raises its threshold for giving memory back to twice the largest mapping that was freed, up
// to a mapping of 32 MB. Any program that frees an array of that size comes to the same state.
// Unlike mallopt() this leaves what the user has set alone, and other libraries' malloc unmoved.
void keep_freed_memory() {
  constexpr size_t kLargestMapping = (size_t{32} << 20) - (64 << 10);
  void* volatile mapping = std::malloc(kLargestMapping);  // volatile: or it would be optimised away
  std::free(mapping);
}

}  // namespace stoker
