// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "image/finish.h"

namespace stoker {

/// Finished pictures of one size, one behind the other.
struct PictureBatch {
  FinishedPicture first;
  uint64_t rows = 0;

  FinishedPicture picture(uint64_t row) const {
    FinishedPicture picture = first;
    picture.data += row * first.bytes();
    return picture;
  }
};

// Each picture is mixed with the one before it as that was, the first with the last; bit for bit
// what torchvision's v2.MixUp and v2.CutMix do on a CPU, given what they draw.

/// x * lambda + before * (1 - lambda), for the numbers [begin, end) of every picture: threads may
/// share them out. Rounded to the type after each product and the sum. Throws Error(usage) where
/// they are uint8.
void mix_up(const PictureBatch& batch, double lambda, size_t begin, size_t end);
void mix_up(const PictureBatch& batch, double lambda);

/// Each picture gets the region from the one before it.
void cut_mix(const PictureBatch& batch, const Region& region);

}  // namespace stoker
