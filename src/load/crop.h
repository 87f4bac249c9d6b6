// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "image/decode.h"
#include "load/sample_random.h"

namespace stoker {

/// Which part of a photo becomes a training picture.
struct CropRecipe {
  enum class Kind : uint8_t {
    whole,   // all of it, resized
    random,  // torchvision's RandomResizedCrop
  };
  Kind kind = Kind::whole;
  Size size;  // of the result
  Resample resample = Resample::bilinear;
  double smallest_area = 0.08, largest_area = 1.0;  // share of the photo's
  double smallest_ratio = 3.0 / 4, largest_ratio = 4.0 / 3;
  double flip = 0;  // how probable it is to be mirrored
};

/// What to decode of a photo of this size. Draws from `random` as many numbers as it needs.
DecodeOptions plan_crop(const CropRecipe& recipe, Size photo, SampleRandom& random);

}  // namespace stoker
