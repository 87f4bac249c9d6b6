// SPDX-License-Identifier: Apache-2.0
#include "load/order.h"

#include <algorithm>

#include "base/hash.h"

namespace stoker {

EpochOrder::EpochOrder(uint64_t samples, std::optional<uint64_t> seed, uint64_t epoch)
    : size_(samples) {
  if (seed) shuffled_.emplace(samples, mix64(mix64(*seed) + epoch));
}

RankShare::RankShare(uint64_t samples, uint64_t begin, Ranks ranks, Remainder remainder)
    : samples_(samples), begin_(begin), ranks_(ranks) {
  const uint64_t left = samples - begin;
  size_ = left / ranks.world;
  if (remainder == Remainder::pad && left % ranks.world != 0) ++size_;
}

uint64_t RankShare::after(uint64_t count) const {
  return count >= size_ ? samples_ : begin_ + count * ranks_.world;
}

}  // namespace stoker
