// SPDX-License-Identifier: Apache-2.0
#include "load/crop.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

/// As torchvision's: ten tries, then as much of the middle as the ratios allow.
Region random_region(const CropRecipe& recipe, Size photo, SampleRandom& random) {
  constexpr int kTries = 10;
  const double low = std::log(recipe.smallest_ratio);
  const double high = std::log(recipe.largest_ratio);
  for (int i = 0; i < kTries; ++i) {
    const double area = static_cast<double>(photo.pixels()) *
                        random.uniform(recipe.smallest_area, recipe.largest_area);
    const double ratio = std::exp(random.uniform(low, high));
    const auto width = static_cast<uint32_t>(std::lround(std::sqrt(area * ratio)));
    const auto height = static_cast<uint32_t>(std::lround(std::sqrt(area / ratio)));
    if (width == 0 || height == 0 || width > photo.width || height > photo.height) continue;
    const uint32_t top = random.below(photo.height - height + 1);
    const uint32_t left = random.below(photo.width - width + 1);
    return {top, left, height, width};
  }
  uint32_t width = photo.width;
  uint32_t height = photo.height;
  const double ratio = static_cast<double>(width) / height;
  if (ratio < recipe.smallest_ratio) {
    height = static_cast<uint32_t>(std::lround(width / recipe.smallest_ratio));
  } else if (ratio > recipe.largest_ratio) {
    width = static_cast<uint32_t>(std::lround(height * recipe.largest_ratio));
  }
  height = std::clamp(height, 1U, photo.height);
  width = std::clamp(width, 1U, photo.width);
  return {(photo.height - height) / 2, (photo.width - width) / 2, height, width};
}

}  // namespace

DecodeOptions plan_crop(const CropRecipe& recipe, Size photo, SampleRandom& random) {
  DecodeOptions options;
  if (recipe.kind == CropRecipe::Kind::random) {
    options.crop = random_region(recipe, photo, random);
  }
  options.size = recipe.size;
  options.resample = recipe.resample;
  options.flip = recipe.flip > 0 && random.uniform() < recipe.flip;
  return options;
}

}  // namespace stoker
