// SPDX-License-Identifier: Apache-2.0
#include "image/jpeg_kernels.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "image/each_target.h"

namespace stoker {
namespace {

// That the plain code is libjpeg-turbo's is tested in baseline_decoder_test.cpp, and against
// Pillow in tests/python/test_decode.py.

std::vector<uint8_t> noise(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() >> 8);
  return bytes;
}

TEST(JpegKernels, EveryInverseDctGivesTheBitsOfPlainCode) {
  constexpr uint32_t kBlocks = 37;
  std::mt19937 random(3);
  int compared = 0;
  // Of a photo; of nothing but the first coefficient; and far beyond any: sums then run over.
  for (const int largest : {200, 0, 1024, 32767}) {
    std::vector<int16_t> plain(size_t{kBlocks} * 64);
    std::vector<int16_t> factors(64);
    for (int16_t& factor : factors) factor = static_cast<int16_t>(random() % 255 + 1);
    for (size_t i = 0; i < plain.size(); ++i) {
      const int most = i % 64 == 0 ? 8191 / factors[0] : largest;
      const int value = static_cast<int>(random() % (2 * most + 1)) - most;
      plain[i] = static_cast<int16_t>(random() % 3 == 0 || i % 64 == 0 ? value : 0);
    }
    const size_t stride = size_t{kBlocks} * 8 + 64;
    std::vector<uint8_t> expected(stride * 8);
    const bool usual =
        inverse_dct_plainly(plain.data(), factors.data(), kBlocks, expected.data(), stride);
    EXPECT_EQ(usual, largest == 0);
    with_each_target([&] {
      const uint32_t group = blocks_per_group();
      std::vector<int16_t> grouped((plain.size() / 64 + group) * 64);
      for (size_t block = 0; block < kBlocks; ++block) {
        for (size_t i = 0; i < 64; ++i) {
          grouped[block / group * 64 * group + i / 8 * 8 * group + block % group * 8 + i % 8] =
              plain[block * 64 + i];
        }
      }
      std::vector<uint8_t> made(stride * 8);
      ASSERT_EQ(inverse_dct(grouped.data(), factors.data(), kBlocks, made.data(), stride), usual);
      for (size_t row = 0; row < 8; ++row) {
        ASSERT_EQ(std::memcmp(made.data() + row * stride, expected.data() + row * stride,
                              size_t{kBlocks} * 8),
                  0)
            << largest << " row " << row;
      }
      ++compared;
    });
  }
  EXPECT_GE(compared, 4);
}

TEST(JpegKernels, EveryUpsamplingGivesTheBitsOfPlainCode) {
  int compared = 0;
  with_each_target([&] {
    for (uint32_t count = 1; count < 150; count += count < 40 ? 1 : 13) {
      // One sample before, and room to read behind.
      const std::vector<uint8_t> near = noise(count + 1 + kRowSlack, count);
      const std::vector<uint8_t> other = noise(count + 1 + kRowSlack, count + 1);
      std::vector<uint8_t> made(2 * count + kRowSlack);
      std::vector<uint8_t> expected(2 * count);
      const auto same = [&](size_t size) {
        return std::equal(expected.begin(), expected.begin() + static_cast<ptrdiff_t>(size),
                          made.begin());
      };
      double_width(near.data() + 1, count, made.data());
      double_width_plainly(near.data() + 1, count, expected.data());
      ASSERT_TRUE(same(size_t{2} * count)) << count;
      double_both(near.data() + 1, other.data() + 1, count, made.data());
      double_both_plainly(near.data() + 1, other.data() + 1, count, expected.data());
      ASSERT_TRUE(same(size_t{2} * count)) << count;
      for (const uint8_t bias : {1, 2}) {
        double_height(near.data(), other.data(), count, bias, made.data());
        double_height_plainly(near.data(), other.data(), count, bias, expected.data());
        ASSERT_TRUE(same(count)) << count;
      }
      ++compared;
    }
  });
  EXPECT_GE(compared, 45);
}

/// All that three bytes can be, of which one thread of two.
TEST(JpegKernels, EveryColourIsThatOfPlainCode) {
  std::vector<uint8_t> light(256 + kRowSlack), blue(light.size()), red(light.size());
  for (size_t i = 0; i < light.size(); ++i) light[i] = static_cast<uint8_t>(i);
  std::vector<uint8_t> made(256 * 4 + kRowSlack);
  std::vector<uint8_t> expected(256 * 4);
  const auto same_colours = [&] {
    for (size_t i = 0; i < 256 * 4; ++i) {
      if (i % 4 != 3 && made[i] != expected[i]) return false;
    }
    return true;
  };
  with_each_target([&] {
    for (int b = 0; b < 256; ++b) {
      for (int r = 0; r < 256; ++r) {
        std::fill(blue.begin(), blue.end(), static_cast<uint8_t>(b));
        std::fill(red.begin(), red.end(), static_cast<uint8_t>(r));
        colours_from_ycc(light.data(), blue.data(), red.data(), 256, made.data());
        colours_from_ycc_plainly(light.data(), blue.data(), red.data(), 256, expected.data());
        ASSERT_TRUE(same_colours()) << b << " " << r;
      }
    }
    for (uint32_t count = 1; count < 256; ++count) {
      colours_from_rgb(light.data(), blue.data(), red.data(), count, made.data());
      colours_from_rgb_plainly(light.data(), blue.data(), red.data(), count, expected.data());
      ASSERT_TRUE(std::equal(made.begin(), made.begin() + count * 4, expected.begin()));
    }
  });
}

TEST(JpegKernels, StuffedBytesAreTakenOutUpToAMarker) {
  with_each_target([] {
    std::mt19937 random(5);
    for (int round = 0; round < 300; ++round) {
      std::vector<uint8_t> data;
      std::vector<uint8_t> stuffed;
      const size_t size = random() % 400;
      for (size_t i = 0; i < size; ++i) {
        data.push_back(random() % 20 == 0 ? 0xFF : static_cast<uint8_t>(random() >> 8));
        stuffed.push_back(data.back());
        if (data.back() == 0xFF) stuffed.push_back(0);
      }
      const size_t end = stuffed.size();
      const auto marker = static_cast<uint8_t>(random() % 3 == 0 ? 0 : 0xD0 + random() % 10);
      if (marker != 0) {
        stuffed.insert(stuffed.end(), 1 + random() % 2, 0xFF);
        stuffed.insert(stuffed.end(), {marker, 1, 2, 3});
      }
      std::vector<uint8_t> out(stuffed.size() + kUnstuffSlack);
      const Unstuffed got = unstuff(stuffed, out.data());
      ASSERT_EQ(got.marker, marker);
      ASSERT_EQ(got.read, end);
      ASSERT_EQ(got.written, data.size());
      ASSERT_TRUE(std::equal(data.begin(), data.end(), out.begin()));
    }
    // Fill bytes that no marker follows end it.
    const std::vector<uint8_t> filled = {1, 0xFF, 0, 2, 0xFF, 0xFF, 0, 3};
    std::vector<uint8_t> before(filled.size() + kUnstuffSlack);
    const Unstuffed stopped = unstuff(filled, before.data());
    EXPECT_EQ(stopped.written, 3U);
    EXPECT_EQ(stopped.read, 4U);
    EXPECT_EQ(stopped.marker, kFillBytes);
    // A 0xFF with nothing behind it is no data.
    const std::vector<uint8_t> cut = {1, 2, 0xFF};
    std::vector<uint8_t> out(cut.size() + kUnstuffSlack);
    const Unstuffed got = unstuff(cut, out.data());
    EXPECT_EQ(got.written, 2U);
    EXPECT_EQ(got.read, 2U);
    EXPECT_EQ(got.marker, 0);
  });
}

}  // namespace
}  // namespace stoker
