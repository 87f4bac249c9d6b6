// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/permutation.h"

namespace stoker {

/// This process among those that train together.
struct Ranks {
  uint32_t rank = 0;
  uint32_t world = 1;
};

/// What happens to samples at the end of an epoch that cannot be shared out evenly.
enum class Remainder : uint8_t {
  pad,   // the epoch's first samples come again, so that every rank has as many
  drop,  // they are left out
};

/// The order of the samples of one epoch: position -> sample, at no cost and in any order. Decided
/// by seed and epoch alone; ranks and threads only share it out.
class EpochOrder {
 public:
  /// Without a seed: as they lie.
  EpochOrder(uint64_t samples, std::optional<uint64_t> seed, uint64_t epoch);

  uint64_t size() const { return size_; }
  /// REQUIRES: position < size().
  uint64_t operator()(uint64_t position) const {
    return shuffled_ ? (*shuffled_)(position) : position;
  }

 private:
  uint64_t size_;
  std::optional<Permutation> shuffled_;
};

/// The positions of one rank in what is left of an epoch. As PyTorch's DistributedSampler deals
/// them out: one to each rank in turn, the same number to all. The positions before `begin` are
/// done, by however many ranks; so is where the next epoch stands after any number of samples.
class RankShare {
 public:
  /// REQUIRES: begin <= samples, rank < world.
  RankShare(uint64_t samples, uint64_t begin, Ranks ranks, Remainder remainder);

  /// How many this rank has.
  uint64_t size() const { return size_; }
  /// Position of the i-th of them. REQUIRES: i < size().
  uint64_t position(uint64_t i) const {
    return (begin_ + i * ranks_.world + ranks_.rank) % samples_;
  }
  /// Whether the i-th only pads, and is another rank's, or another turn's.
  bool pads(uint64_t i) const { return begin_ + i * ranks_.world + ranks_.rank >= samples_; }
  /// Where the epoch stands when every rank has had its first `count`.
  uint64_t after(uint64_t count) const;

 private:
  uint64_t samples_, begin_;
  Ranks ranks_;
  uint64_t size_;
};

}  // namespace stoker
