// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <random>
#include <string>
#include <unordered_set>

namespace stoker {
namespace {

// From an implementation in Python of the definition in the header. Files depend on these.
TEST(Hash64, FixedVectors) {
  EXPECT_EQ(hash64(""), 0xFBF3D07040A8E228u);
  EXPECT_EQ(hash64("a"), 0xCA844397D8380CFFu);
  EXPECT_EQ(hash64(std::string_view("\0", 1)), 0x3DA858D3F9116921u);
  EXPECT_EQ(hash64(std::string_view("\0\0", 2)), 0x88C97CF49A7EB6BDu);
  EXPECT_EQ(hash64("abcdefg"), 0x6E7921843AC9E44Du);
  EXPECT_EQ(hash64("abcdefgh"), 0x3A5898B2DCCB7463u);
  EXPECT_EQ(hash64("abcdefghi"), 0x821CF2F09D041E38u);
  EXPECT_EQ(hash64("train/n01440764/n01440764_10026.JPEG"), 0xC8EE137DA65315E3u);
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(hash64(all), 0x4708C3AE001D8FE6u);
}

TEST(Hash64, DoesNotDependOnAlignment) {
  const std::string text = "........the same bytes elsewhere";
  for (size_t shift = 0; shift < 8; ++shift) {
    const std::string moved = std::string(shift, 'x') + text;
    EXPECT_EQ(hash64(std::string_view(moved).substr(shift)), hash64(text));
  }
}

TEST(Hash64, SequentialNamesDoNotCollideAndFillBuckets) {
  std::unordered_set<uint64_t> seen;
  std::array<int, 256> low{};
  std::array<int, 256> high{};
  constexpr int kNames = 200'000;
  for (int i = 0; i < kNames; ++i) {
    const uint64_t hash = hash64("train/" + std::to_string(i) + ".jpg");
    EXPECT_TRUE(seen.insert(hash).second) << i;
    ++low[hash & 0xFF];
    ++high[hash >> 56];
  }
  for (size_t i = 0; i < 256; ++i) {  // 781 expected, standard deviation 28
    EXPECT_NEAR(low[i], kNames / 256, 160);
    EXPECT_NEAR(high[i], kNames / 256, 160);
  }
}

TEST(Hash64, EveryInputBitChangesAboutHalfOfTheOutput) {
  std::mt19937_64 random(1);
  for (const size_t size : {1, 7, 8, 9, 16, 24, 37}) {
    std::array<int, 64> flips{};
    int tries = 0;
    for (int sample = 0; sample < 300; ++sample) {
      std::string text(size, '\0');
      for (char& c : text) c = static_cast<char>(random());
      const uint64_t before = hash64(text);
      for (size_t bit = 0; bit < 8 * size; ++bit, ++tries) {
        text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
        const uint64_t changed = before ^ hash64(text);
        text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
        EXPECT_GT(std::popcount(changed), 8);
        for (size_t out = 0; out < 64; ++out) flips[out] += (changed >> out) & 1;
      }
    }
    for (const int count : flips) {
      EXPECT_NEAR(static_cast<double>(count) / tries, 0.5, 0.1) << size;
    }
  }
}

}  // namespace
}  // namespace stoker
