// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker {

// The loops of colour.cpp that do arithmetic, for whatever vectors the CPU has (chosen when first
// called); every path gives the same bits. `count` is of pixels.

/// The sum of what Pillow's mode L is for each pixel.
uint64_t sum_gray(const uint8_t* pixels, size_t count);
void make_gray(uint8_t* pixels, size_t count);
/// gray + factor * (pixel - gray), in float, cut off at 0 and 255 and behind the point.
void blend_with_gray(uint8_t* pixels, size_t count, float factor);
/// To Pillow's HSV, adds `shift` to H modulo 256, and back.
void shift_hue(uint8_t* pixels, size_t count, uint8_t shift);
/// A row that has one above and one below, blended as above with what Pillow's SMOOTH makes of it;
/// all but its first and last pixel. `out` may be none of the rows.
void blend_with_smoothed(const uint8_t* above, const uint8_t* row, const uint8_t* below,
                         size_t count, float factor, uint8_t* out);

}  // namespace stoker
