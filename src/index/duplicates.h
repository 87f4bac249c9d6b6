// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "dataset/index.h"

namespace stoker {

struct DuplicateKey {
  uint64_t sample = 0;  // the later one
  uint64_t first = 0;   // the one that has the key already
};

/// Every sample whose key an earlier sample has, in the order of the samples. Goes through the
/// sorted hashes of all segments at once, so memory grows with the duplicates alone.
std::vector<DuplicateKey> find_duplicates(const Index& index);

/// The same as a fault of the later sample.
Fault duplicate_fault(const Index& index, const DuplicateKey& twice);

}  // namespace stoker
