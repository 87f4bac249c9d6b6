// SPDX-License-Identifier: Apache-2.0
#include "image/resample.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "image/each_target.h"
#include "image/resample_kernels.h"

namespace stoker {
namespace {

// That the pixels are Pillow's is tested against Pillow itself, in tests/python/test_decode.py.

constexpr Resample kSumming[] = {Resample::box, Resample::bilinear, Resample::bicubic,
                                 Resample::lanczos};

PixelBuffer noise(Size size, unsigned seed) {
  PixelBuffer pixels;
  pixels.resize(size);
  std::mt19937 random(seed);
  for (uint32_t y = 0; y < size.height; ++y) {
    // Half of it black and white: sums then leave 0 to 255 and have to be cut off.
    for (uint32_t x = 0; x < size.width * 4; ++x) {
      const unsigned value = random();
      pixels.row(y)[x] = static_cast<uint8_t>(value % 2 == 0 ? value >> 8 : (value >> 8) % 2 * 255);
    }
  }
  return pixels;
}

TEST(Resample, EveryKernelGivesTheBitsOfPlainCode) {
  const std::pair<Size, Size> cases[] = {
      {{7, 5}, {3, 2}},     {{1, 1}, {9, 8}},     {{33, 47}, {224, 224}}, {{301, 399}, {224, 224}},
      {{64, 900}, {31, 5}}, {{900, 64}, {4, 33}}, {{3, 2000}, {2, 3}}};
  int compared = 0;
  with_each_target([&] {
    for (const auto& [from, to] : cases) {
      const PixelBuffer image = noise(from, from.width);
      for (const Resample filter : kSumming) {
        for (const bool flip : {false, true}) {
          ResampleWeights weights;
          weights.set(from.width, to.width, 0, to.width, filter);
          PackedWeights packed;
          PixelBuffer rows, expected;
          rows.resize({from.height, to.width});
          expected.resize({from.height, to.width});
          pack_weights(weights, flip, packed);
          resample_rows(image.view(), weights, packed, rows, 0);
          resample_rows_plainly(image.view(), weights, flip, expected, 0);
          for (uint32_t y = 0; y < from.height; ++y) {
            for (uint32_t x = 0; x < to.width; ++x) {
              const uint8_t* const made = rows.row(y) + size_t{x} * packed.pixel_bytes;
              ASSERT_EQ(std::memcmp(made, expected.row(y) + size_t{x} * 4, 3), 0)
                  << from.width << " " << x << " " << y;
            }
          }
          weights.set(from.height, to.height, 0, to.height, filter);
          std::vector<uint8_t> row(to.width * 4 + PixelView::kSlack), wanted(row.size());
          for (uint32_t y = 0; y < to.height; ++y) {
            resample_column(rows.view(), to.width * 4, weights, y, row.data());
            resample_column_plainly(rows.view(), to.width * 4, weights, y, wanted.data());
            ASSERT_EQ(std::memcmp(row.data(), wanted.data(), to.width * 4), 0) << from.height;
          }
          ++compared;
        }
      }
    }
  });
  EXPECT_GE(compared, 56);
}

TEST(Resample, WeightsOfAPixelSumToOne) {
  for (const Resample filter : kSumming) {
    ResampleWeights weights;
    weights.set(500, 224, 0, 224, filter);
    for (uint32_t i = 0; i < 224; ++i) {
      int64_t sum = 0;
      for (uint32_t k = 0; k < weights.stride; ++k) sum += weights.values[i * weights.stride + k];
      EXPECT_NEAR(static_cast<double>(sum), 1 << ResampleWeights::kBits, weights.stride);
      EXPECT_LE(weights.windows[i].first + weights.windows[i].count, 500U);
    }
  }
}

// Three bytes with a sign hold what is less than two.
TEST(Resample, WeightsAreLessThanTwo) {
  for (const Resample filter : kSumming) {
    for (uint32_t in = 1; in < 40; ++in) {
      for (uint32_t out = 1; out < 120; ++out) {
        ResampleWeights weights;
        weights.set(in, out, 0, out, filter);
        for (const int32_t weight : weights.values) {
          ASSERT_LT(std::abs(weight), 2 << ResampleWeights::kBits) << in << " to " << out;
        }
      }
    }
  }
}

TEST(Resample, PixelsLoseTheirFourthByte) {
  with_each_target([] {
    for (uint32_t width = 1; width < 40; ++width) {
      PixelBuffer image = noise({1, width}, width);
      for (const bool flip : {false, true}) {
        std::vector<uint8_t> row(width * 3 + 1, 0xAB), wanted(row);
        pack_row(image.row(0), width, flip, row.data());
        pack_row_plainly(image.row(0), width, flip, wanted.data());
        ASSERT_EQ(row, wanted) << width;
      }
    }
  });
}

TEST(Resample, NamesAreThoseOfPillow) {
  EXPECT_EQ(find_resample("lanczos"), Resample::lanczos);
  EXPECT_EQ(find_resample("hamming"), std::nullopt);
}

}  // namespace
}  // namespace stoker
