// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

#include "base/hash.h"

namespace stoker {

/// Pseudo-random numbers (splitmix64) that are the same on every machine and with every standard
/// library, so that the same steps give the same interval.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() { return mix64(state_ += 0x9E3779B97F4A7C15u); }

  /// In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }

  /// In [0, size). REQUIRES: 0 < size < 2^32.
  size_t below(size_t size) { return static_cast<size_t>(((next() >> 32) * size) >> 32); }

  /// Mean 0, variance 1 (Box and Muller).
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  uint64_t state_;
};

}  // namespace stoker
