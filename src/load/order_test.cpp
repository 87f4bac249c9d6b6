// SPDX-License-Identifier: Apache-2.0
#include "load/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

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

/// What all ranks get from `begin` on, up to `count` samples each; nothing that pads.
std::vector<Drawn> load(uint64_t samples, uint64_t seed, uint64_t epoch, uint64_t begin,
                        uint32_t world, uint64_t count) {
  const EpochOrder order(samples, seed, epoch);
  std::vector<Drawn> drawn;
  for (uint32_t rank = 0; rank < world; ++rank) {
    const RankShare share(samples, begin, {rank, world}, Remainder::pad);
    for (uint64_t i = 0; i < std::min(count, share.size()); ++i) {
      if (!share.pads(i)) drawn.push_back(draw(seed, epoch, order(share.position(i))));
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

TEST(Order, EpochsDiffer) {
  std::set<std::vector<uint64_t>> orders;
  for (uint64_t epoch = 0; epoch < 20; ++epoch) {
    const EpochOrder order(100, 1, epoch);
    std::vector<uint64_t> samples;
    for (uint64_t i = 0; i < order.size(); ++i) samples.push_back(order(i));
    orders.insert(samples);
    std::sort(samples.begin(), samples.end());
    for (uint64_t i = 0; i < 100; ++i) ASSERT_EQ(samples[i], i);
  }
  EXPECT_EQ(orders.size(), 20U);
  const EpochOrder plain(100, std::nullopt, 3);
  EXPECT_EQ(plain(17), 17U);
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
