// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dataset.h"

namespace stoker::python {

// What walks over many samples at once. Nothing here needs the GIL.

/// One number field of many samples.
struct Column {
  bool is_real = false;
  std::vector<int64_t> integers;  // 0 for a sample that has none
  std::vector<double> reals;      // instead, where is_real
  std::vector<int64_t> absent;    // positions of samples that have none
};

/// Reads data only where the index does not hold the numbers themselves.
Column read_column(const Dataset& dataset, const std::string& field, Range range);

/// Relative path and size of the shards that begin in a segment.
std::vector<std::pair<std::string, uint64_t>> shards_of_segment(const Dataset& dataset,
                                                                uint32_t number);

}  // namespace stoker::python
