// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "image/geometry.h"
#include "image/pixels.h"

namespace stoker {

/// Pixels repeated on each side of a picture, so that those around any place in it can be read.
constexpr size_t kFrame = 2;

/// Writes the pixels of `picture` that lie in `framed` at `matrix` times their place, interpolated
/// as Pillow does, in double. `framed` has a frame of kFrame pixels. For whatever vectors the CPU
/// has; every path gives the same bits. `interpolation` is bilinear or bicubic.
void warp_smoothly(const PixelView& framed, const std::array<double, 6>& matrix,
                   const WarpOptions& options, const Picture& picture);

}  // namespace stoker
