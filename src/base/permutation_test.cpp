// SPDX-License-Identifier: Apache-2.0
#include "base/permutation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

namespace stoker {
namespace {

std::vector<uint64_t> values(uint64_t size, uint64_t seed) {
  const Permutation permutation(size, seed);
  std::vector<uint64_t> result;
  for (uint64_t i = 0; i < size; ++i) result.push_back(permutation(i));
  return result;
}

void expect_bijection(uint64_t size, uint64_t seed) {
  std::vector<bool> seen(size);
  for (const uint64_t value : values(size, seed)) {
    ASSERT_LT(value, size);
    ASSERT_FALSE(seen[value]) << "size " << size << " seed " << seed << " value " << value;
    seen[value] = true;
  }
}

// From an implementation in Python of the definition in the header.
TEST(Permutation, FixedVectors) {
  EXPECT_EQ(values(10, 0), (std::vector<uint64_t>{7, 9, 0, 5, 3, 2, 6, 4, 1, 8}));
  EXPECT_EQ(values(10, 1), (std::vector<uint64_t>{8, 1, 9, 2, 3, 7, 5, 0, 6, 4}));
  const Permutation imagenet(1'281'167, 42);
  EXPECT_EQ(imagenet(0), 1'112'142u);
  EXPECT_EQ(imagenet(1), 191'966u);
  EXPECT_EQ(imagenet(1'281'166), 494'930u);
  const Permutation big(uint64_t{1} << 40, 7);
  EXPECT_EQ(big(0), 575'478'670'998u);
  EXPECT_EQ(big((uint64_t{1} << 40) - 1), 141'945'901'997u);
  const Permutation biggest(UINT64_MAX, 7);
  EXPECT_EQ(biggest(0), 9'705'716'192'705'988'963u);
  EXPECT_EQ(biggest(UINT64_MAX - 1), 7'205'099'038'733'977'877u);
}

TEST(Permutation, IsABijection) {
  EXPECT_EQ(Permutation(0, 1).size(), 0u);
  for (uint64_t size = 1; size <= 300; ++size) {
    for (const uint64_t seed : {0u, 1u, 99u}) expect_bijection(size, seed);
  }
  for (int bits = 9; bits <= 17; ++bits) {
    const uint64_t power = uint64_t{1} << bits;
    for (const uint64_t size : {power - 1, power, power + 1, power + power / 2}) {
      expect_bijection(size, 5);
    }
  }
  expect_bijection(1'281'167, 42);
}

TEST(Permutation, SmallSizesTakeEveryOrderAboutEquallyOften) {
  constexpr int kSeeds = 24'000;
  std::map<std::vector<uint64_t>, int> orders;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) ++orders[values(4, seed)];
  EXPECT_EQ(orders.size(), 24u);
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, kSeeds / 24, 250);
}

TEST(Permutation, EachPlaceTakesEachValueAboutEquallyOften) {
  constexpr uint64_t kSize = 23;
  constexpr int kSeeds = 23'000;
  std::vector<int> counts(kSize * kSize);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::vector<uint64_t> order = values(kSize, seed);
    for (uint64_t i = 0; i < kSize; ++i) ++counts[i * kSize + order[i]];
  }
  // 1000 expected, standard deviation 31; 529 cells.
  for (const int count : counts) EXPECT_NEAR(count, 1000, 160);
}

TEST(Permutation, NeighboursLandFarApart) {
  const std::vector<uint64_t> order = values(100'003, 3);
  double distance = 0;
  int fixed = 0;
  int ascending = 0;
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    distance += std::abs(static_cast<double>(order[i]) - static_cast<double>(order[i + 1]));
    ascending += order[i] < order[i + 1];
    fixed += order[i] == i;
  }
  EXPECT_NEAR(distance / 100'003 / 100'003, 1.0 / 3, 0.01);  // of two random places
  EXPECT_NEAR(ascending / 100'003.0, 0.5, 0.01);
  EXPECT_LT(fixed, 8);  // one expected
}

TEST(Permutation, SeedsAndSizesGiveUnrelatedOrders) {
  const std::vector<uint64_t> one = values(10'000, 1);
  for (const auto& other : {values(10'000, 2), values(10'001, 1)}) {
    int same = 0;
    for (size_t i = 0; i < one.size(); ++i) same += one[i] == other[i];
    EXPECT_LT(same, 10);  // one expected
  }
}

}  // namespace
}  // namespace stoker
