// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "image/pixels.h"

namespace stoker {

// Changes of colour, in place, bit for bit those of Pillow's ImageEnhance and ImageOps and of
// torchvision's adjust_hue of a PIL image. A factor of 1 changes nothing.

/// Towards black where `factor` is below 1, away from it above.
void adjust_brightness(const Picture& picture, double factor);
/// Towards or away from the mean of the gray picture.
void adjust_contrast(const Picture& picture, double factor);
/// Towards or away from gray.
void adjust_saturation(const Picture& picture, double factor);
/// Towards or away from the smoothed picture. The pixels at the edge stay as they are.
void adjust_sharpness(const Picture& picture, double factor);
/// Turns the hue by `factor` of the circle. REQUIRES: -0.5 <= factor <= 0.5.
void adjust_hue(const Picture& picture, double factor);

/// Keeps the highest `bits` of each value. REQUIRES: 1 <= bits <= 8.
void posterize(const Picture& picture, unsigned bits);
/// Inverts the values that are not below `threshold`.
void solarize(const Picture& picture, double threshold);
/// Stretches each channel to 0 … 255.
void autocontrast(const Picture& picture);
/// Makes all values of a channel about equally frequent.
void equalize(const Picture& picture);
void invert(const Picture& picture);
/// All three channels become what Pillow's mode L is.
void make_grayscale(const Picture& picture);

}  // namespace stoker
