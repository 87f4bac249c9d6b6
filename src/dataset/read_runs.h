// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataset/reader.h"

namespace stoker {

// Which items of a batch a Reader fetches at once.

// Reading a gap costs less than another system call and seek up to about this size.
inline constexpr uint64_t kMaxReadGap = 16384;
inline constexpr size_t kMaxRunItems = 256;

/// One read of consecutive bytes that serves several items; gaps go to waste.
struct ReadRun {
  size_t first = 0, last = 0;  // of the sorted items
};

/// Whether an item lies neither in a block nor in pieces.
bool is_plain(const Item& item);

/// What decoding its block costs, as the number of bytes that could be read meanwhile.
uint64_t decoding_cost(const Index& index, const Item& item);

/// Sorts `order`, which are numbers of items, by place, and cuts it into runs.
std::vector<ReadRun> merge_runs(const Index& index, const std::vector<Item>& items,
                                std::vector<uint32_t>& order);

}  // namespace stoker
