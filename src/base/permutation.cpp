// SPDX-License-Identifier: Apache-2.0
#include "base/permutation.h"

#include <bit>

#include "base/hash.h"

namespace stoker {

Permutation::Permutation(uint64_t size, uint64_t seed) : size_(size) {
  if (size > 0) {
    left_bits_ = std::bit_width(size - 1) / 2;
    columns_ = ((size - 1) >> left_bits_) + 1;
  }
  uint64_t key = mix64(seed) + mix64(~size);
  for (uint64_t& round_key : keys_) {
    key += 0x9E3779B97F4A7C15u;
    round_key = mix64(key);
  }
}

// The grid exceeds the size by less than one column, so hardly any value has to go through the
// rounds twice. Rounding up to a power of four, as is common, can take four passes on average.
uint64_t Permutation::operator()(uint64_t i) const {
  const uint64_t mask = (uint64_t{1} << left_bits_) - 1;
  do {
    uint64_t left = i & mask;
    uint64_t right = i >> left_bits_;
    for (int round = 0; round < kRounds; round += 2) {
      left = (left + mix64(right ^ keys_[round])) & mask;
      right += ((mix64(left ^ keys_[round + 1]) >> 32) * columns_) >> 32;
      if (right >= columns_) right -= columns_;
    }
    i = (right << left_bits_) | left;
  } while (i >= size_);
  return i;
}

}  // namespace stoker
