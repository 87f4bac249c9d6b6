// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "image/decode.h"
#include "load/sample_random.h"

namespace stoker {

/// What lies around a picture where a crop reaches beyond it; torchvision's padding_mode.
enum class PaddingMode : uint8_t { constant, edge, reflect, symmetric };

/// One step that says which part of a photo becomes a training picture, and how large:
/// torchvision's transforms of these names.
struct GeometryStep {
  enum class Kind : uint8_t {
    random_resized_crop,
    resize,          // to `size` whatever the shape
    resize_shorter,  // the shorter side becomes size.height, the longer at most size.width (0: any)
    center_crop,
    random_crop,
    horizontal_flip,
  };
  Kind kind = Kind::resize;
  Size size;  // of the result
  Resample resample = Resample::bilinear;
  double smallest_area = 0.08, largest_area = 1.0;  // share of the photo's
  double smallest_ratio = 3.0 / 4, largest_ratio = 4.0 / 3;
  struct Padding {
    uint32_t left = 0, top = 0, right = 0, bottom = 0;
  };
  Padding padding;  // of random_crop
  bool pad_if_needed = false;
  PaddingMode mode = PaddingMode::constant;
  std::array<uint8_t, 3> fill = {0, 0, 0};
  double probability = 0.5;  // of horizontal_flip
};

/// The same for one photo.
struct PicturePlan {
  DecodeOptions decode;       // the part that lies in the photo
  Region placed;              // where it comes to lie in the picture
  Size size;                  // of the picture
  Region bounds;              // of the (resized) photo: what lies outside is padding
  int64_t top = 0, left = 0;  // where the picture begins in the bounds; negative: before them
  PaddingMode mode = PaddingMode::constant;
  std::array<uint8_t, 3> fill = {0, 0, 0};

  bool padded() const { return placed.size() != size; }
};

/// Steps that follow each other, done at once while a photo is decoded.
class Geometry {
 public:
  /// Throws Error(usage) where they cannot be done at once, or give no picture of fixed size.
  explicit Geometry(std::vector<GeometryStep> steps);

  /// Of every picture; nothing where the photos' own is kept.
  std::optional<Size> size() const { return size_; }
  /// Draws from `random` what is random about it. Throws Error(unsupported) where the photo is too
  /// small for a crop.
  PicturePlan plan(Size photo, SampleRandom& random) const;

 private:
  std::vector<GeometryStep> steps_;
  std::optional<Size> size_;
};

/// Decodes the opened photo as planned: plan.size pixels of three bytes, rows packed.
/// `scratch` is kept memory of the caller.
void decode_picture(ImageDecoder& decoder, const PicturePlan& plan, std::vector<uint8_t>& scratch,
                    uint8_t* out);

}  // namespace stoker
