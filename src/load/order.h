// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

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

/// Samples that take part in an epoch together, in proportion to `share`: a class, or one of
/// several datasets.
struct SampleGroup {
  double share = 1;
  std::vector<uint64_t> members;
};

/// How samples are shuffled where reading far apart is slow: blocks of neighbours in random order,
/// so many at a time, and the samples of those shuffled among each other.
struct BlockShuffle {
  uint64_t block = 0;   // samples
  uint64_t window = 0;  // blocks that are mixed at a time
};

/// Which samples an epoch consists of, and in what order.
struct OrderOptions {
  enum class Kind : uint8_t { sequential, shuffled, blocks };
  Kind kind = Kind::shuffled;
  uint64_t seed = 0;
  BlockShuffle blocks;
  // Of the following at most one is given:
  std::vector<uint64_t> subset;     // these samples alone
  std::vector<double> weights;      // by sample: drawn with replacement, this probable
  std::vector<SampleGroup> groups;  // in these shares, without replacement within each
};

/// One sample's turn in an epoch.
struct Draw {
  uint64_t sample = 0;
  /// What its random numbers belong to: the sample, or its turn where it may come several times.
  uint64_t identity = 0;
};

/// What the samples of every epoch are, and how their order comes about. Immutable.
class Order {
 public:
  /// Throws Error(usage) where the options make no sense.
  Order(uint64_t samples, OrderOptions options);

  /// Turns in an epoch.
  uint64_t size() const { return size_; }
  const OrderOptions& options() const { return options_; }
  /// The same for the same options: says what a saved position belongs to.
  uint64_t fingerprint() const;

  /// Positions that lie close together and should be read together: a window of a block shuffle.
  uint64_t window() const;
  /// How well batches are mixed, from 0 to 1: where neighbours are alike, a batch is at least as
  /// varied as one of mixing * batch samples of a full shuffle. 1 for a full shuffle, 0 for none.
  double mixing(uint64_t batch) const;

 private:
  friend class EpochOrder;
  /// Draws i with probability threshold(i), else alias(i): Vose's method.
  struct Alias {
    double threshold = 1;
    uint64_t alias = 0;
  };
  void weigh();
  void share_out();

  OrderOptions options_;
  uint64_t size_ = 0;
  std::vector<Alias> aliases_;
  std::vector<uint64_t> group_ends_;  // in an epoch, before it is shuffled
  uint64_t lanes_ = 1;                // of a block shuffle
};

/// The order of one epoch: position -> sample, at no cost and in any order. Decided by seed and
/// epoch alone; ranks and threads only share it out. Immutable; keeps pointing to its Order.
class EpochOrder {
 public:
  EpochOrder(const Order& order, uint64_t epoch);

  uint64_t size() const { return order_->size_; }
  /// REQUIRES: position < size().
  Draw operator()(uint64_t position) const;

 private:
  uint64_t in_blocks(uint64_t position) const;
  Draw in_groups(uint64_t position) const;
  Draw weighted(uint64_t position) const;

  const Order* order_;
  uint64_t epoch_, seed_;
  Permutation shuffled_;
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
