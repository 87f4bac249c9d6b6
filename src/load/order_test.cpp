// SPDX-License-Identifier: Apache-2.0
#include "load/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "load/sample_random.h"

namespace stoker {
namespace {

/// A sample and a few of its random numbers: what its pixels would be made of.
struct Drawn {
  uint64_t sample = 0;
  uint32_t first = 0, second = 0;

  auto operator<=>(const Drawn&) const = default;
};

Drawn draw(uint64_t seed, uint64_t epoch, uint64_t sample) {
  SampleRandom random(seed, epoch, sample);
  return {sample, random.word(), random.below(1000)};
}

Order shuffled(uint64_t samples, uint64_t seed) {
  OrderOptions options;
  options.seed = seed;
  return {samples, options};
}

std::vector<uint64_t> samples_of(const Order& orders, uint64_t epoch) {
  const EpochOrder order(orders, epoch);
  std::vector<uint64_t> samples;
  for (uint64_t i = 0; i < order.size(); ++i) samples.push_back(order(i).sample);
  return samples;
}

/// What all ranks get from `begin` on, up to `count` samples each; nothing that pads.
std::vector<Drawn> load(uint64_t samples, uint64_t seed, uint64_t epoch, uint64_t begin,
                        uint32_t world, uint64_t count) {
  const Order orders = shuffled(samples, seed);
  const EpochOrder order(orders, epoch);
  std::vector<Drawn> drawn;
  for (uint32_t rank = 0; rank < world; ++rank) {
    const RankShare share(samples, begin, {rank, world}, Remainder::pad);
    for (uint64_t i = 0; i < std::min(count, share.size()); ++i) {
      if (!share.pads(i)) drawn.push_back(draw(seed, epoch, order(share.position(i)).identity));
    }
  }
  return drawn;
}

TEST(Order, ResumesExactlyWithAnyNumberOfRanks) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) {
    const uint64_t samples = 1 + random() % 500;
    const uint64_t seed = random(), epoch = random() % 100;
    const auto before = static_cast<uint32_t>(1 + random() % 9);
    const auto after = static_cast<uint32_t>(1 + random() % 9);
    const uint64_t everything = samples;
    std::vector<Drawn> whole = load(samples, seed, epoch, 0, 1, everything);
    const RankShare share(samples, 0, {0, before}, Remainder::pad);
    const uint64_t done = random() % (share.size() + 1);
    std::vector<Drawn> resumed = load(samples, seed, epoch, 0, before, done);
    const std::vector<Drawn> rest =
        load(samples, seed, epoch, share.after(done), after, everything);
    resumed.insert(resumed.end(), rest.begin(), rest.end());
    std::sort(whole.begin(), whole.end());
    std::sort(resumed.begin(), resumed.end());
    ASSERT_EQ(resumed, whole) << samples << " samples, " << before << " ranks, then " << after;
    ASSERT_EQ(whole.size(), samples);
  }
}

TEST(Order, SharesAsDistributedSamplerDoes) {
  // DistributedSampler(range(7), num_replicas=3, rank=r, shuffle=False), printed by PyTorch 2.
  const std::vector<std::vector<uint64_t>> padded = {{0, 3, 6}, {1, 4, 0}, {2, 5, 1}};
  const std::vector<std::vector<uint64_t>> dropped = {{0, 3}, {1, 4}, {2, 5}};  // drop_last=True
  for (uint32_t rank = 0; rank < 3; ++rank) {
    const auto positions = [&](Remainder remainder) {
      const RankShare share(7, 0, {rank, 3}, remainder);
      std::vector<uint64_t> found;
      for (uint64_t i = 0; i < share.size(); ++i) found.push_back(share.position(i));
      return found;
    };
    EXPECT_EQ(positions(Remainder::pad), padded[rank]);
    EXPECT_EQ(positions(Remainder::drop), dropped[rank]);
  }
}

TEST(Order, MoreRanksThanSamples) {
  for (uint32_t rank = 0; rank < 5; ++rank) {
    const RankShare share(2, 0, {rank, 5}, Remainder::pad);
    ASSERT_EQ(share.size(), 1U);
    EXPECT_EQ(share.position(0), rank % 2);
    EXPECT_EQ(share.pads(0), rank >= 2);
    EXPECT_EQ(RankShare(2, 0, {rank, 5}, Remainder::drop).size(), 0U);
  }
}

/// Whether these are 0 … count-1 in some order.
void expect_each_once(std::vector<uint64_t> samples, uint64_t count) {
  ASSERT_EQ(samples.size(), count);
  std::sort(samples.begin(), samples.end());
  for (uint64_t i = 0; i < count; ++i) ASSERT_EQ(samples[i], i);
}

TEST(Order, EpochsDiffer) {
  const Order order = shuffled(100, 1);
  std::set<std::vector<uint64_t>> orders;
  for (uint64_t epoch = 0; epoch < 20; ++epoch) {
    orders.insert(samples_of(order, epoch));
    expect_each_once(samples_of(order, epoch), 100);
  }
  EXPECT_EQ(orders.size(), 20U);
  OrderOptions plain;
  plain.kind = OrderOptions::Kind::sequential;
  EXPECT_EQ(samples_of({100, plain}, 3)[17], 17U);
}

Order blocks(uint64_t samples, uint64_t block, uint64_t window) {
  OrderOptions options;
  options.kind = OrderOptions::Kind::blocks;
  options.blocks = {block, window};
  return {samples, options};
}

TEST(Order, BlockShuffleHasEverySampleOnce) {
  for (const uint64_t samples : {1, 2, 7, 100, 1'000, 12'345}) {
    for (const uint64_t block : {1, 3, 16, 5'000}) {
      for (const uint64_t window : {1, 5, 64, 1'000}) {
        for (uint64_t epoch = 0; epoch < 3; ++epoch) {
          expect_each_once(samples_of(blocks(samples, block, window), epoch), samples);
        }
      }
    }
  }
}

TEST(Order, BlockShuffleReadsNeighboursTogether) {
  // Of every window, each rank's samples must lie in few ranges, and no two ranks' in the same.
  const Order orders = blocks(64'000, 20, 128);
  const EpochOrder order(orders, 4);
  ASSERT_EQ(orders.window(), 128U * 20);
  for (const uint32_t world : {1, 2, 8}) {
    for (uint32_t rank = 0; rank < world; ++rank) {
      const RankShare share(orders.size(), 0, {rank, world}, Remainder::pad);
      std::vector<uint64_t> samples;
      for (uint64_t i = 0; i < orders.window() / world; ++i) {
        samples.push_back(order(share.position(i)).sample);
      }
      std::sort(samples.begin(), samples.end());
      uint64_t ranges = 1;
      for (size_t i = 1; i < samples.size(); ++i) ranges += samples[i] != samples[i - 1] + 1;
      EXPECT_LE(ranges, 128 / world + 2) << world;  // blocks at the ends of the dataset break
    }
  }
}

/// Variance of the mean over a batch of something that is the same within a block, under a full
/// shuffle, over that under this order. Blocks begin at another sample in every epoch; so does what
/// is the same: the worst that can be.
double measured_mixing(const Order& order, const Order& full, uint64_t block, uint64_t batch) {
  std::vector<double> value(order.size() / block + 1);
  for (size_t i = 0; i < value.size(); ++i) {
    value[i] = SampleRandom(9, 0, i).uniform() - 0.5;
  }
  const auto variance = [&](const Order& orders) {
    double sum = 0;
    uint64_t batches = 0;
    for (uint64_t epoch = 0; epoch < 20; ++epoch) {
      const EpochOrder each(orders, epoch);
      const uint64_t size = each.size();
      const uint64_t shift = mix64(mix64(0) + epoch) % size;
      const auto of = [&](uint64_t sample) {
        return value[(sample + size - shift) % size / block];
      };
      double mean = 0;
      for (uint64_t s = 0; s < size; ++s) mean += of(s);
      mean /= static_cast<double>(each.size());
      for (uint64_t first = 0; first + batch <= each.size(); first += batch, ++batches) {
        double of_batch = 0;
        for (uint64_t i = 0; i < batch; ++i) of_batch += of(each(first + i).sample);
        of_batch = of_batch / static_cast<double>(batch) - mean;
        sum += of_batch * of_batch;
      }
    }
    return sum / static_cast<double>(batches);
  };
  return variance(full) / variance(order);
}

TEST(Order, MixingIsAtLeastWhatItSays) {
  const Order full = shuffled(40'960, 1);  // lanes of whole blocks
  EXPECT_EQ(full.mixing(256), 1);
  for (const auto& [block, window] :
       std::vector<std::pair<uint64_t, uint64_t>>{{20, 64}, {20, 256}, {40, 512}, {10, 4'096}}) {
    const Order order = blocks(40'960, block, window);
    const double said = order.mixing(128);
    const double measured = measured_mixing(order, full, block, 128);
    // Lanes take turns within a batch, which is better than chance.
    EXPECT_GE(measured, 0.97 * said) << block;
    EXPECT_LE(measured, 1.45 * said) << block;
  }
  EXPECT_EQ(blocks(40'960, 10, 4'096).mixing(128), 1);
  EXPECT_NEAR(blocks(1'280'000, 40, 256).mixing(256), 0.5, 0.01);
}

TEST(Order, WeightsAreProbabilities) {
  OrderOptions options;
  options.weights = {0, 1, 2, 3, 4, 0};
  const Order order(6, options);
  std::vector<double> counts(6);
  for (uint64_t epoch = 0; epoch < 10'000; ++epoch) {
    for (const uint64_t sample : samples_of(order, epoch)) ++counts[sample];
  }
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(counts[i], options.weights[i] * 6'000, 300) << i;
  EXPECT_EQ(counts[0] + counts[5], 0);
  // A sample that comes twice has other random numbers each time.
  const EpochOrder first(order, 0);
  std::set<uint64_t> identities;
  for (uint64_t i = 0; i < 6; ++i) identities.insert(first(i).identity);
  EXPECT_EQ(identities.size(), 6U);
}

TEST(Order, GroupsHaveTheirShareAndEveryMemberItsTurn) {
  OrderOptions options;
  options.groups = {{3, {0, 1}}, {1, {2, 3, 4, 5, 6, 7}}};
  const Order order(8, options);
  std::map<uint64_t, int> counts;
  std::set<std::pair<uint64_t, uint64_t>> identities;
  for (uint64_t epoch = 0; epoch < 30; ++epoch) {
    const EpochOrder each(order, epoch);
    for (uint64_t i = 0; i < 8; ++i) {
      ++counts[each(i).sample];
      identities.insert({epoch, each(i).identity});
    }
  }
  for (const uint64_t sample : {0, 1}) EXPECT_EQ(counts[sample], 90);  // 6 of 8 turns for two
  for (uint64_t sample = 2; sample < 8; ++sample) EXPECT_EQ(counts[sample], 10);
  EXPECT_EQ(identities.size(), 240U);
}

TEST(Order, SubsetsAndWhatMakesNoSense) {
  OrderOptions options;
  options.subset = {5, 3, 9};
  std::vector<uint64_t> samples = samples_of({10, options}, 2);
  std::sort(samples.begin(), samples.end());
  EXPECT_EQ(samples, (std::vector<uint64_t>{3, 5, 9}));
  options.kind = OrderOptions::Kind::sequential;
  EXPECT_EQ(samples_of({10, options}, 2), options.subset);
  EXPECT_NE(Order(10, options).fingerprint(), shuffled(10, 0).fingerprint());
  EXPECT_EQ(shuffled(10, 0).fingerprint(), shuffled(10, 0).fingerprint());
  EXPECT_THROW(Order(9, options), Error);
  OrderOptions weighted;
  weighted.weights = {1, -1};
  EXPECT_THROW(Order(2, weighted), Error);
  weighted.weights = {0, 0};
  EXPECT_THROW(Order(2, weighted), Error);
  weighted.weights = {1, 1, 1};
  EXPECT_THROW(Order(2, weighted), Error);
}

TEST(SampleRandom, IsPhilox) {
  // Known answers of the authors' Random123, philox4x32-10.
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(SampleRandom, IsEvenlySpread) {
  std::map<uint32_t, int> counts;
  double sum = 0;
  for (uint64_t sample = 0; sample < 10'000; ++sample) {
    SampleRandom random(1, 2, sample);
    ++counts[random.below(10)];
    const double uniform = random.uniform();
    ASSERT_GE(uniform, 0);
    ASSERT_LT(uniform, 1);
    sum += uniform;
  }
  for (const auto& [number, count] : counts) EXPECT_NEAR(count, 1000, 150) << number;
  EXPECT_EQ(counts.size(), 10U);
  EXPECT_NEAR(sum / 10'000, 0.5, 0.02);
}

}  // namespace
}  // namespace stoker
