// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace stoker {

/// A pseudo-random order of [0, size) in constant memory: i -> permutation(i) is a bijection.
/// Its values decide the order of samples, so they never change for a given size and seed.
/// Immutable, hence safe to share between threads.
///
/// Definition: with n the bits of size - 1 and k = n / 2 rounded down, a number is a pair of
/// left = its low k bits and right = the rest, right < columns = ((size - 1) >> k) + 1. Eight
/// rounds r = 0..7 with keys key[r] = mix64(mix64(seed) + mix64(~size) + (r + 1) * golden),
/// golden = 0x9E3779B97F4A7C15, change one half by the other:
///   even r:  left  = (left + mix64(right ^ key[r])) mod 2^k
///   odd r:   right = (right + (((mix64(left ^ key[r]) >> 32) * columns) >> 32)) mod columns
/// A result >= size goes through the rounds again.
class Permutation {
 public:
  Permutation(uint64_t size, uint64_t seed);

  /// REQUIRES: i < size().
  uint64_t operator()(uint64_t i) const;

  uint64_t size() const { return size_; }

 private:
  static constexpr int kRounds = 8;

  uint64_t size_;
  uint64_t columns_ = 1;
  int left_bits_ = 0;
  std::array<uint64_t, kRounds> keys_;
};

}  // namespace stoker
