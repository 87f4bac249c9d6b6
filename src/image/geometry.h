// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "image/pixels.h"
#include "image/resample.h"

namespace stoker {

void flip_horizontally(const Picture& picture);
void flip_vertically(const Picture& picture);

/// How pixels are found that do not fall on one, and the colour of those from outside.
struct WarpOptions {
  Resample interpolation = Resample::nearest;  // or bilinear, bicubic
  std::array<uint8_t, 3> fill{};

  bool operator==(const WarpOptions&) const = default;
};

/// Moves the content of a picture, in place, bit for bit as torchvision does it to PIL images.
/// Keeps its memory; one per thread.
class Warper {
 public:
  /// By whole pixels: right and down where positive.
  void translate(const Picture& picture, int64_t right, int64_t down, const WarpOptions& options);
  /// RandAugment's ShearX: the row y moves to the left by `slope` times y. Slopes are -1 to 1.
  void shear_x(const Picture& picture, double slope, const WarpOptions& options);
  /// RandAugment's ShearY: the column x moves up by `slope` times x.
  void shear_y(const Picture& picture, double slope, const WarpOptions& options);
  /// Around the middle, against the clock.
  void rotate(const Picture& picture, double degrees, const WarpOptions& options);

 private:
  /// Where the pixel at (x, y) comes from: (m[0] x + m[1] y + m[2], m[3] x + m[4] y + m[5]).
  using Matrix = std::array<double, 6>;

  void warp(const Picture& picture, const Matrix& matrix, const WarpOptions& options);
  void warp_nearest(const Picture& picture, const Matrix& matrix, const WarpOptions& options);
  /// False where it is no quarter turn that keeps the size.
  bool turn_squarely(const Picture& picture, double degrees);
  const uint8_t* copy(const Picture& picture);

  std::vector<uint8_t> copy_;
  PixelBuffer framed_;
};

}  // namespace stoker
