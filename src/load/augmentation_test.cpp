// SPDX-License-Identifier: Apache-2.0
#include "load/augmentation.h"

#include <gtest/gtest.h>

#include <span>

#include "base/crc32c.h"

namespace stoker {
namespace {

const std::vector<AugmentationStep> kEveryStep = {
    ColorJitter{NumberRange{0.6, 1.4}, NumberRange{0.6, 1.4}, std::nullopt, NumberRange{-0.1, 0.1}},
    RandAugment{},
    TrivialAugmentWide{31, {Resample::bilinear, {1, 2, 3}}},
    RandomHorizontalFlip{},
    RandomVerticalFlip{},
    RandomGrayscale{},
};

std::vector<Change> draw(uint64_t seed, uint64_t epoch, uint64_t sample, Size size = {224, 224}) {
  SampleRandom random(seed, epoch, sample);
  return draw_changes(kEveryStep, size, random);
}

TEST(Augmentation, DrawsWhatItAlwaysDrew) {
  const std::vector<Change> expected = {
      {Operation::brightness, 0.65827155113220215, {}},
      {Operation::hue, 0.094936490058898926, {}},
      {Operation::contrast, 1.1889356374740601, {}},
      {Operation::shear_x, -0.090000003576278687, {}},
      {Operation::contrast, 1.2699999809265137, {}},
      {Operation::brightness, 1.4289999902248383, {Resample::bilinear, {1, 2, 3}}},
      {Operation::horizontal_flip, 0, {}},
      {Operation::vertical_flip, 0, {}},
      {Operation::grayscale, 0, {}},
  };
  EXPECT_EQ(draw(1, 2, 3), expected);
  EXPECT_NE(draw(2, 2, 3), expected);
  EXPECT_NE(draw(1, 3, 3), expected);
  EXPECT_NE(draw(1, 2, 4), expected);
}

TEST(Augmentation, SizeAndRangesChangeNoOtherDraw) {
  for (uint64_t sample = 0; sample < 200; ++sample) {
    SampleRandom first(5, 0, sample);
    SampleRandom second(5, 0, sample);
    draw_changes(kEveryStep, {224, 224}, first);
    std::vector<AugmentationStep> others = kEveryStep;
    others[0] = ColorJitter{};
    others[1] = RandAugment{2, 30, 31, {Resample::bicubic, {}}};
    others[3] = RandomHorizontalFlip{0};
    draw_changes(others, {7, 500}, second);
    ASSERT_EQ(first.word(), second.word()) << sample;
  }
}

TEST(Augmentation, PixelsAreWhatTheyAlwaysWere) {
  const Size size{61, 43};
  std::vector<uint8_t> pixels(size.pixels() * 3);
  Augmenter augmenter;
  uint32_t sum = 0;
  for (uint64_t sample = 0; sample < 100; ++sample) {
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * i / 7 + sample);
    SampleRandom random(9, 1, sample);
    augment(kEveryStep, random, augmenter, {pixels.data(), size});
    sum = crc32c(std::as_bytes(std::span(pixels)), sum);
  }
  EXPECT_EQ(sum, 3062256586U);
}

TEST(Augmentation, ErasesWithinThePicture) {
  const RandomErasing erasing{1, {0.1, 0.5}, {0.2, 5}, std::nullopt};
  const Size size{30, 50};
  int found = 0;
  for (uint64_t sample = 0; sample < 2000; ++sample) {
    SampleRandom random(3, 0, sample);
    const std::optional<Region> region = draw_erasing(erasing, size, random);
    if (!region) continue;
    ++found;
    ASSERT_TRUE(region->fits(size));
    ASSERT_LT(region->height, size.height);
    ASSERT_LT(region->width, size.width);
    EXPECT_NEAR(static_cast<double>(region->size().pixels()), 450, 350);
  }
  EXPECT_GT(found, 1990);
  SampleRandom random(3, 0, 0);
  EXPECT_EQ(draw_erasing({0, {0.1, 0.5}, {0.2, 5}, std::nullopt}, size, random), std::nullopt);
  EXPECT_EQ(draw_erasing({1, {0.9, 1}, {1, 1}, std::nullopt}, {1, 1}, random), std::nullopt);
}

TEST(Augmentation, BetaIsSymmetricAndAsWideAsItShouldBe) {
  for (const double alpha : {0.1, 1.0, 4.0}) {
    constexpr int kDraws = 20'000;
    double sum = 0;
    double squares = 0;
    for (uint64_t sample = 0; sample < kDraws; ++sample) {
      SampleRandom random(4, 0, sample);
      const double lambda = draw_beta(alpha, random);
      ASSERT_GE(lambda, 0);
      ASSERT_LE(lambda, 1);
      sum += lambda;
      squares += (lambda - 0.5) * (lambda - 0.5);
    }
    EXPECT_NEAR(sum / kDraws, 0.5, 0.01) << alpha;
    EXPECT_NEAR(squares / kDraws, 1 / (4 * (2 * alpha + 1)), 0.005) << alpha;
  }
}

TEST(Augmentation, CutsMixWithinThePicture) {
  const Size size{20, 33};
  for (uint64_t sample = 0; sample < 1000; ++sample) {
    SampleRandom random(6, 0, sample);
    const CutMixDraw cut = draw_cut_mix(1, size, random);
    ASSERT_TRUE(cut.region.fits(size));
    const auto left = static_cast<double>(size.pixels() - cut.region.size().pixels());
    ASSERT_NEAR(cut.lambda, left / 660, 1e-12);
  }
}

}  // namespace
}  // namespace stoker
