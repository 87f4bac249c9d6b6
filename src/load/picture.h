// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "image/augment.h"
#include "image/finish.h"
#include "load/augmentation.h"
#include "load/batch.h"
#include "load/geometry.h"
#include "load/loader_stats.h"

namespace stoker {

/// torchvision's MixUp or CutMix.
struct BatchMix {
  enum class Kind : uint8_t { mix_up, cut_mix };
  Kind kind = Kind::mix_up;
  double alpha = 1;
};

/// How an encoded photo becomes a training picture, step by step, and pictures a batch.
struct PictureRecipe {
  Geometry geometry{std::vector<GeometryStep>{}};
  std::vector<AugmentationStep> augmentation;
  Finisher finisher{FinishOptions{}};
  std::vector<RandomErasing> erasing;
  /// One after the other; of several in one place chance takes one.
  std::vector<std::vector<BatchMix>> mixing;
  uint32_t classes = 0;  // that labels count, where there is mixing
  Size size;             // of the pictures
  /// A damaged photo gives the pixels that Pillow gives for it, instead of an error.
  bool like_pillow = false;

  /// Of one picture, as it lies in a batch.
  std::string element() const;
  std::vector<uint64_t> shape() const;
};

/// A photo as it was fetched; what else is known about it: see DecodeOptions.
struct EncodedPhoto {
  Bytes bytes;
  Bytes row_index;
  std::optional<uint32_t> crc;
  std::optional<RawImage> raw;  // it is not encoded
};

/// Makes pictures. One per thread.
class PictureMaker {
 public:
  /// Draws from `random` what is random about it. Throws Error with the cause alone. Returns what
  /// is wrong with a damaged photo that was decoded like Pillow does; empty: nothing.
  std::string make(const PictureRecipe& recipe, const EncodedPhoto& photo, SampleRandom& random,
                   std::byte* out);
  /// Those decoded since it was asked last.
  DecodeCounts take_counts() { return std::exchange(counts_, {}); }

 private:
  std::string decode(PicturePlan& plan, bool like_pillow, uint8_t* out);

  ImageDecoder decoder_;
  Augmenter augmenter_;
  std::vector<uint8_t> scratch_, picture_;
  DecodeCounts counts_{};
};

/// Mixes the pictures of a batch; labels become as many numbers as there are classes.
/// Throws Error(unsupported) where a label is none of them.
/// REQUIRES: `image` is the name of their column.
void mix_batch(const PictureRecipe& recipe, std::string_view image, SampleRandom& random,
               BatchMemory& memory, LoadedBatch& batch);

}  // namespace stoker
