// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace stoker {

/// One block of Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011):
/// four words from a counter and a key, without any state.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// Random numbers that belong to a sample: seed, epoch and sample decide them, whoever draws them,
/// in whatever thread and on whatever rank. Their values never change.
///
/// Definition: draw d is word d mod 4 of philox({d / 4, sample mod 2^32, sample / 2^32, epoch mod
/// 2^32}, {seed mod 2^32, seed / 2^32}).
class SampleRandom {
 public:
  SampleRandom(uint64_t seed, uint64_t epoch, uint64_t sample);

  uint32_t word();
  /// In [0, 1): 53 bits of two words, the first the higher.
  double uniform();
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// In [0, count): word * count / 2^32. REQUIRES: count > 0.
  uint32_t below(uint32_t count) { return static_cast<uint32_t>((uint64_t{word()} * count) >> 32); }

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  unsigned used_ = 4;  // of block_
};

}  // namespace stoker
