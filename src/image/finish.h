// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "image/pixels.h"

namespace stoker {

/// Numbers that pictures are handed out in, by NumPy's and torch's names.
enum class PixelType : uint8_t { uint8, float32, float16, bfloat16 };

std::optional<PixelType> find_pixel_type(std::string_view name);
size_t size_of(PixelType type);

/// Within a picture: pixel by pixel, or channel by channel.
enum class PixelLayout : uint8_t { nhwc, nchw };

struct FinishOptions {
  PixelType type = PixelType::uint8;
  PixelLayout layout = PixelLayout::nhwc;
  bool scale = false;  // to 0 … 1; uint8 stays what it is
  struct Normalize {
    std::array<float, 3> mean{}, deviation{};  // by channel
  };
  std::optional<Normalize> normalize;  // not of uint8
};

/// A picture as it is handed out, or room for one.
struct FinishedPicture {
  std::byte* data = nullptr;
  Size size;
  PixelType type = PixelType::uint8;
  PixelLayout layout = PixelLayout::nhwc;

  size_t bytes() const { return size.pixels() * 3 * size_of(type); }
};

/// The last step to what training wants. Each value is, in float32 and rounded after each of them,
///
///   x;  times float(1.0 / 255) where it is scaled;  minus mean;  divided by deviation
///
/// as torchvision's v2.ToDtype(float32, scale) and v2.Normalize calculate it, then rounded to the
/// type once (to nearest, ties to even). Any number of threads may share one.
class Finisher {
 public:
  /// Throws Error(usage) where uint8 should be normalized, or a deviation is 0.
  explicit Finisher(const FinishOptions& options);

  const FinishOptions& options() const { return options_; }
  /// REQUIRES: room for picture.bytes() numbers of the type at `out`.
  FinishedPicture run(const Picture& picture, std::byte* out) const;

 private:
  FinishOptions options_;
  // What becomes of each value, by channel.
  std::array<std::array<float, 256>, 3> floats_{};
  std::array<std::array<uint16_t, 256>, 3> halves_{};
};

// RandomErasing. A value is rounded to the type, and to uint8 cut off behind the point.

void erase(const FinishedPicture& picture, const Region& region, const std::array<float, 3>& value);
/// Calls `next` for each value: row by row, pixel by pixel, red, green, blue, whatever the layout.
void erase(const FinishedPicture& picture, const Region& region,
           const std::function<float()>& next);

}  // namespace stoker
