// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "image/augment.h"
#include "load/sample_random.h"

namespace stoker {

// What is random about a picture behind its crop, by torchvision's names and with the
// distributions of torchvision.transforms.v2. Which numbers are drawn is decided by `random` alone;
// the order in which they are is fixed, because it decides the pixels of a seed.

struct NumberRange {
  double low = 0, high = 0;
};

/// Each factor is drawn evenly from its range, and the four are applied in random order. What has
/// no range stays.
struct ColorJitter {
  std::optional<NumberRange> brightness, contrast, saturation, hue;
};

struct RandAugment {
  uint32_t num_ops = 2;
  uint32_t magnitude = 9;  // below num_magnitude_bins
  uint32_t num_magnitude_bins = 31;
  WarpOptions warp;
};

struct TrivialAugmentWide {
  uint32_t num_magnitude_bins = 31;
  WarpOptions warp;
};

struct RandomHorizontalFlip {
  double p = 0.5;
};

struct RandomVerticalFlip {
  double p = 0.5;
};

struct RandomGrayscale {
  double p = 0.1;
};

using AugmentationStep = std::variant<ColorJitter, RandAugment, TrivialAugmentWide,
                                      RandomHorizontalFlip, RandomVerticalFlip, RandomGrayscale>;

/// What the steps do to a picture of this size, in order.
std::vector<Change> draw_changes(const std::vector<AugmentationStep>& steps, Size size,
                                 SampleRandom& random);

/// Does what draw_changes() says.
void augment(const std::vector<AugmentationStep>& steps, SampleRandom& random, Augmenter& augmenter,
             const Picture& picture);

struct RandomErasing {
  double p = 0.5;
  NumberRange scale{0.02, 0.33};                         // part of the picture
  NumberRange ratio{0.3, 3.3};                           // of height to width
  std::optional<std::array<float, 3>> value{{0, 0, 0}};  // by channel; none: normal noise
};

/// The region to erase; nothing as often as `p` says, or where ten tries found none that is
/// smaller than the picture in both directions.
std::optional<Region> draw_erasing(const RandomErasing& erasing, Size size, SampleRandom& random);

/// Numbers of mean 0 and deviation 1.
class NormalRandom {
 public:
  explicit NormalRandom(SampleRandom& random) : random_(random) {}
  double operator()();

 private:
  SampleRandom& random_;
  std::optional<double> second_;  // they are made in pairs
};

/// MixUp's lambda: of the distribution Beta(alpha, alpha). REQUIRES: alpha > 0.
double draw_beta(double alpha, SampleRandom& random);

struct CutMixDraw {
  Region region;
  double lambda = 1;  // the part that is left of a picture
};
CutMixDraw draw_cut_mix(double alpha, Size size, SampleRandom& random);

}  // namespace stoker
