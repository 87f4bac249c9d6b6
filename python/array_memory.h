// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

namespace stoker::python {

/// Gives memory back, for the next array. REQUIRES: the GIL.
void give_back(void* memory) noexcept;

struct GiveBack {
  void operator()(std::byte* memory) const { give_back(memory); }
};

/// Memory of one array, aligned as NumPy aligns its own. What arrays no longer need is kept for the
/// next ones: malloc returns the memory of a whole batch to the system, which then clears it page
/// by page for the next batch, and that takes as long as reading it.
using ArrayMemory = std::unique_ptr<std::byte[], GiveBack>;

/// REQUIRES: the GIL, which also guards what is kept.
ArrayMemory array_memory(size_t size);

}  // namespace stoker::python
