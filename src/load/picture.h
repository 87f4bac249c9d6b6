// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "load/geometry.h"

namespace stoker {

/// How an encoded photo becomes a training picture.
struct PictureRecipe {
  Geometry geometry{std::vector<GeometryStep>{}};
  Size size;  // of the pictures

  /// Of one picture, as it lies in a batch.
  std::string element() const;
  std::vector<uint64_t> shape() const;
};

/// Makes pictures. One per thread.
class PictureMaker {
 public:
  /// Draws from `random` what is random about it. Throws Error with the cause alone.
  void make(const PictureRecipe& recipe, Bytes encoded, SampleRandom& random, std::byte* out);

 private:
  ImageDecoder decoder_;
  std::vector<uint8_t> scratch_;
};

}  // namespace stoker
