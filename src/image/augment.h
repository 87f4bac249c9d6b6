// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "image/geometry.h"
#include "image/pixels.h"

namespace stoker {

/// What can be done to a picture without changing its size, and what the amount of it means.
enum class Operation : uint8_t {
  identity,
  brightness,       // factor
  contrast,         // factor
  saturation,       // factor
  sharpness,        // factor
  hue,              // part of the circle, -0.5 to 0.5
  posterize,        // bits that are kept, 1 to 8
  solarize,         // threshold, 0 to 256
  autocontrast,     // -
  equalize,         // -
  invert,           // -
  grayscale,        // -
  horizontal_flip,  // -
  vertical_flip,    // -
  shear_x,          // slope, -1 to 1
  shear_y,          // slope, -1 to 1
  translate_x,      // pixels to the right; what is behind the point is cut off
  translate_y,      // pixels down
  rotate,           // degrees against the clock
};

std::optional<Operation> find_operation(std::string_view name);
std::string_view name_of(Operation operation);

/// An operation with everything that decides its result.
struct Change {
  Operation operation = Operation::identity;
  double amount = 0;
  WarpOptions warp;  // of shear, translate and rotate

  bool operator==(const Change&) const = default;
};

/// Changes pictures, bit for bit as torchvision.transforms.v2.functional changes PIL images. Keeps
/// its memory; one per thread.
class Augmenter {
 public:
  /// Throws Error(usage) where the amount makes no sense.
  void apply(const Change& change, const Picture& picture);

 private:
  Warper warper_;
};

}  // namespace stoker
