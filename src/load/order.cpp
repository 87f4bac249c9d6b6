// SPDX-License-Identifier: Apache-2.0
#include "load/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "base/error.h"
#include "base/hash.h"
#include "load/sample_random.h"

namespace stoker {
namespace {

using Kind = OrderOptions::Kind;

/// Ranges of a dataset that are shuffled each by themselves and take turns: a rank that takes every
/// 2nd, 4th, … sample reads blocks that no other rank reads.
constexpr uint64_t kLanes = 64;

void check(uint64_t samples, const OrderOptions& options) {
  const int given =
      int{!options.subset.empty()} + int{!options.weights.empty()} + int{!options.groups.empty()};
  const auto refuse = [](const std::string& why) { throw Error(ErrorKind::usage, why); };
  if (given > 1) refuse("subset, weights and shares: only one of them at a time");
  if (options.kind != Kind::shuffled && !(options.weights.empty() && options.groups.empty())) {
    refuse("weights and shares decide the order by chance: they need shuffle=True");
  }
  for (const uint64_t sample : options.subset) {
    if (sample >= samples) refuse(fmt::format("subset: sample {} of {}", sample, samples));
  }
  if (!options.weights.empty() && options.weights.size() != samples) {
    refuse(fmt::format("weights: {} for {} samples", options.weights.size(), samples));
  }
  double sum = 0;
  for (const double weight : options.weights) {
    if (!(weight >= 0) || std::isinf(weight)) refuse("weights: should be numbers of 0 or more");
    sum += weight;
  }
  for (const SampleGroup& group : options.groups) {
    if (!(group.share >= 0) || std::isinf(group.share)) {
      refuse("shares: should be numbers of 0 or more");
    }
    if (group.share > 0 && group.members.empty()) refuse("shares: one of them has no samples");
    sum += group.share;
  }
  if (given > 0 && options.subset.empty() && sum == 0) refuse("weights, shares: all of them are 0");
  if (options.kind == Kind::blocks && (options.blocks.block == 0 || options.blocks.window == 0)) {
    refuse("a block and a window of blocks should have 1 or more samples");
  }
}

}  // namespace

Order::Order(uint64_t samples, OrderOptions options)
    : options_(std::move(options)), size_(samples) {
  check(samples, options_);
  if (!options_.subset.empty()) size_ = options_.subset.size();
  if (!options_.weights.empty()) weigh();
  if (!options_.groups.empty()) share_out();
  if (options_.kind == Kind::blocks) {
    // Lanes that are a power of two go with most numbers of ranks; each mixes blocks of its own.
    while (lanes_ < kLanes && lanes_ * 2 <= options_.blocks.window &&
           lanes_ * 2 * options_.blocks.block * 2 <= size_) {
      lanes_ *= 2;
    }
  }
}

void Order::weigh() {
  const std::vector<double>& weights = options_.weights;
  const double mean =
      std::accumulate(weights.begin(), weights.end(), 0.0) / static_cast<double>(weights.size());
  aliases_.resize(weights.size());
  std::vector<uint64_t> light;
  std::vector<uint64_t> heavy;
  for (uint64_t i = 0; i < weights.size(); ++i) {
    aliases_[i] = {weights[i] / mean, i};
    (weights[i] < mean ? light : heavy).push_back(i);
  }
  while (!light.empty() && !heavy.empty()) {
    const uint64_t low = light.back();
    const uint64_t high = heavy.back();
    light.pop_back();
    aliases_[low].alias = high;
    aliases_[high].threshold -= 1 - aliases_[low].threshold;
    if (aliases_[high].threshold < 1) {
      heavy.pop_back();
      light.push_back(high);
    }
  }
  for (const uint64_t i : light) aliases_[i].threshold = 1;  // what rounding left over
  for (const uint64_t i : heavy) aliases_[i].threshold = 1;
}

/// How many turns of an epoch each group has: as its share says, rounded so that all come to the
/// number of their samples.
void Order::share_out() {
  double sum = 0;
  size_ = 0;
  for (const SampleGroup& group : options_.groups) {
    sum += group.share;
    size_ += group.members.size();
  }
  double upto = 0;
  for (const SampleGroup& group : options_.groups) {
    upto += group.share;
    group_ends_.push_back(
        static_cast<uint64_t>(std::llround(upto / sum * static_cast<double>(size_))));
  }
  group_ends_.back() = size_;
}

uint64_t Order::fingerprint() const {
  const auto bytes_of = [](const auto& values) {
    return std::string_view(reinterpret_cast<const char*>(values.data()),
                            values.size() * sizeof(values[0]));
  };
  uint64_t hash = mix64(options_.seed ^ mix64(static_cast<uint64_t>(options_.kind)));
  const auto add = [&](uint64_t word) { hash = mix64(hash + word); };
  add(size_);
  if (options_.kind == Kind::blocks) {
    add(options_.blocks.block);
    add(options_.blocks.window);
  }
  add(hash64(bytes_of(options_.subset)));
  add(hash64(bytes_of(options_.weights)));
  for (const SampleGroup& group : options_.groups) add(hash64(bytes_of(group.members)));
  add(hash64(bytes_of(group_ends_)));
  return hash;
}

uint64_t Order::window() const {
  if (options_.kind != Kind::blocks) return 1;
  return std::max<uint64_t>(1, options_.blocks.window / lanes_) * lanes_ * options_.blocks.block;
}

double Order::mixing(uint64_t batch) const {
  if (options_.kind == Kind::sequential) return 0;
  if (options_.kind == Kind::shuffled || size_ < 2) return 1;
  // Variance of the mean over a batch of something that is the same within a block and has
  // variance 1 over all: the blocks of a window are a sample of all blocks, the batch one of the
  // window's samples; both without replacement.
  const auto samples = static_cast<double>(size_);
  const double in_batch = std::min(static_cast<double>(batch), samples);
  const double blocks = std::max(1.0, samples / static_cast<double>(options_.blocks.block));
  const double window = std::min(static_cast<double>(options_.blocks.window), blocks);
  const double in_window = std::min(window * static_cast<double>(options_.blocks.block), samples);
  const double of_window = blocks > 1 ? (blocks - window) / (window * (blocks - 1)) : 0;
  const auto of_batch = [&](double from) {
    return from > 1 ? std::max(0.0, from - in_batch) / ((from - 1) * in_batch) : 0;
  };
  const double all = of_window + (1 - of_window) * of_batch(in_window);
  return all > 0 ? std::min(1.0, of_batch(samples) / all) : 1;
}

EpochOrder::EpochOrder(const Order& order, uint64_t epoch)
    : order_(&order),
      epoch_(epoch),
      seed_(mix64(mix64(order.options_.seed) + epoch)),
      shuffled_(order.size_, seed_) {}

Draw EpochOrder::operator()(uint64_t position) const {
  const OrderOptions& options = order_->options_;
  if (!options.weights.empty()) return weighted(position);
  if (!options.groups.empty()) return in_groups(position);
  uint64_t turn = position;
  if (options.kind == Kind::shuffled) turn = shuffled_(position);
  if (options.kind == Kind::blocks) turn = in_blocks(position);
  const uint64_t sample = options.subset.empty() ? turn : options.subset[turn];
  return {sample, sample};
}

/// Lanes take turns. Each is a range of the dataset, which begins elsewhere in every epoch, cut
/// into blocks; the last window of a lane also has the samples that fill no block.
uint64_t EpochOrder::in_blocks(uint64_t position) const {
  const uint64_t size = order_->size_;
  const uint64_t lanes = order_->lanes_;
  const uint64_t block = order_->options_.blocks.block;
  const uint64_t lane = position % lanes;
  const uint64_t turn = position / lanes;
  const uint64_t lane_size = size / lanes + (lane < size % lanes ? 1 : 0);
  const uint64_t lane_first = lane * (size / lanes) + std::min(lane, size % lanes);
  const uint64_t blocks = lane_size / block;
  const uint64_t window_blocks = std::max<uint64_t>(1, order_->options_.blocks.window / lanes);
  const uint64_t windows = std::max<uint64_t>(1, blocks / window_blocks);
  const uint64_t window = std::min(turn / (window_blocks * block), windows - 1);
  const uint64_t begin = window * window_blocks * block;
  const uint64_t length = window == windows - 1 ? lane_size - begin : window_blocks * block;
  const uint64_t lane_seed = mix64(seed_ + lane + 1);
  const uint64_t mixed = begin + Permutation(length, lane_seed + window + 1)(turn - begin);
  uint64_t in_lane = mixed;
  if (mixed / block < blocks) {
    in_lane = Permutation(blocks, lane_seed)(mixed / block) * block + mixed % block;
  }
  const uint64_t shift = seed_ % size;
  return (lane_first + in_lane + shift) % size;
}

/// Groups go on in the next epoch where they were in this one, through all their members in one
/// random order, then in another.
Draw EpochOrder::in_groups(uint64_t position) const {
  const std::vector<uint64_t>& ends = order_->group_ends_;
  const uint64_t turn = shuffled_(position);
  const auto group =
      static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), turn) - ends.begin());
  const uint64_t begin = group == 0 ? 0 : ends[group - 1];
  const std::vector<uint64_t>& members = order_->options_.groups[group].members;
  const uint64_t drawn = epoch_ * (ends[group] - begin) + (turn - begin);
  const uint64_t pass = drawn / members.size();
  const Permutation order(members.size(), mix64(mix64(order_->options_.seed) + group) + pass);
  const uint64_t sample = members[order(drawn % members.size())];
  // It may come several times in an epoch: each pass has its own random numbers.
  return {sample, sample ^ (mix64(pass) << 40)};
}

Draw EpochOrder::weighted(uint64_t position) const {
  SampleRandom random(mix64(order_->options_.seed), epoch_, position);
  const std::vector<Order::Alias>& aliases = order_->aliases_;
  const auto at = std::min<uint64_t>(
      static_cast<uint64_t>(random.uniform() * static_cast<double>(aliases.size())),
      aliases.size() - 1);
  const uint64_t sample = random.uniform() < aliases[at].threshold ? at : aliases[at].alias;
  return {sample, position | (uint64_t{1} << 63)};
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
