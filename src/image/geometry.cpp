// SPDX-License-Identifier: Apache-2.0
#include "image/geometry.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/error.h"
#include "image/warp_kernels.h"

namespace stoker {
namespace {

constexpr double kDegree = std::numbers::pi / 180;

void fill_pixels(uint8_t* to, size_t count, const std::array<uint8_t, 3>& fill) {
  for (size_t i = 0; i < count; ++i) std::memcpy(to + 3 * i, fill.data(), 3);
}

/// Python's round(value, 15).
double round_to_15_digits(double value) {
  std::array<char, 64> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value,
                                 std::chars_format::fixed, 15);
  double rounded = 0;
  std::from_chars(digits.data(), end.ptr, rounded);
  return rounded;
}

/// The picture with pixels of four bytes, its outermost ones repeated kFrame times on each side.
void frame_picture(const Picture& picture, PixelBuffer& framed) {
  const auto [height, width] = picture.size;
  framed.resize(
      {static_cast<uint32_t>(height + 2 * kFrame), static_cast<uint32_t>(width + 2 * kFrame)});
  const size_t stride = framed.view().stride;
  for (size_t y = 0; y < height; ++y) {
    const uint8_t* from = picture.row(y);
    uint8_t* to = framed.row(y + kFrame);
    for (size_t x = 0; x < width + 2 * kFrame; ++x) {
      const size_t source = std::clamp<size_t>(x, kFrame, width + kFrame - 1) - kFrame;
      std::memcpy(to + 4 * x, from + 3 * source, 3);
    }
  }
  for (size_t i = 0; i < kFrame; ++i) {
    std::memcpy(framed.row(i), framed.row(kFrame), stride);
    std::memcpy(framed.row(height + kFrame + i), framed.row(height + kFrame - 1), stride);
  }
}

}  // namespace

void flip_horizontally(const Picture& picture) {
  const size_t width = picture.size.width;
  for (size_t y = 0; y < picture.size.height; ++y) {
    uint8_t* left = picture.row(y);
    uint8_t* right = left + 3 * (width - 1);
    for (; left < right; left += 3, right -= 3) std::swap_ranges(left, left + 3, right);
  }
}

void flip_vertically(const Picture& picture) {
  const size_t height = picture.size.height;
  std::vector<uint8_t> row(picture.stride());
  for (size_t y = 0; y < height / 2; ++y) {
    uint8_t* upper = picture.row(y);
    uint8_t* lower = picture.row(height - 1 - y);
    std::memcpy(row.data(), upper, row.size());
    std::memcpy(upper, lower, row.size());
    std::memcpy(lower, row.data(), row.size());
  }
}

const uint8_t* Warper::copy(const Picture& picture) {
  copy_.assign(picture.data, picture.data + picture.bytes());
  return copy_.data();
}

void Warper::translate(const Picture& picture, int64_t right, int64_t down,
                       const WarpOptions& options) {
  const auto height = static_cast<int64_t>(picture.size.height);
  const auto width = static_cast<int64_t>(picture.size.width);
  const uint8_t* from = copy(picture);
  const int64_t first = std::clamp<int64_t>(right, 0, width);
  const int64_t last = std::clamp<int64_t>(width + right, 0, width);
  for (int64_t y = 0; y < height; ++y) {
    uint8_t* to = picture.row(y);
    const int64_t source = y - down;
    if (source < 0 || source >= height || first >= last) {
      fill_pixels(to, width, options.fill);
      continue;
    }
    fill_pixels(to, first, options.fill);
    std::memcpy(to + 3 * first, from + 3 * (source * width + first - right), 3 * (last - first));
    fill_pixels(to + 3 * last, width - last, options.fill);
  }
}

// torchvision makes an angle in degrees of the slope, and then the slope of it again: not quite
// the same number.

void Warper::shear_x(const Picture& picture, double slope, const WarpOptions& options) {
  const double angle = std::atan(slope) * (180 / std::numbers::pi) * kDegree;
  warp(picture, {1, std::tan(angle), 0, 0, 1, 0}, options);
}

void Warper::shear_y(const Picture& picture, double slope, const WarpOptions& options) {
  const double angle = std::atan(slope) * (180 / std::numbers::pi) * kDegree;
  warp(picture, {1, 0, 0, std::sin(angle) / std::cos(angle), 1, 0}, options);
}

void Warper::rotate(const Picture& picture, double degrees, const WarpOptions& options) {
  degrees = std::fmod(degrees, 360);
  if (degrees < 0) degrees += 360;
  if (turn_squarely(picture, degrees)) return;
  const double angle = -(degrees * kDegree);
  const double cosine = round_to_15_digits(std::cos(angle));
  const double sine = round_to_15_digits(std::sin(angle));
  const double x = picture.size.width / 2.0;
  const double y = picture.size.height / 2.0;
  const double right = cosine * -x + sine * -y + 0.0 + x;
  const double down = -sine * -x + cosine * -y + 0.0 + y;
  warp(picture, {cosine, sine, right, -sine, cosine, down}, options);
}

bool Warper::turn_squarely(const Picture& picture, double degrees) {
  if (degrees == 0) return true;
  const auto [height, width] = picture.size;
  const bool half = degrees == 180;
  const bool quarter = (degrees == 90 || degrees == 270) && width == height;
  if (!half && !quarter) return false;
  const uint8_t* from = copy(picture);
  for (size_t y = 0; y < height; ++y) {
    for (size_t x = 0; x < width; ++x) {
      const size_t row = half ? height - 1 - y : degrees == 90 ? x : height - 1 - x;
      const size_t column = half ? width - 1 - x : degrees == 90 ? width - 1 - y : y;
      std::memcpy(picture.row(y) + 3 * x, from + 3 * (row * width + column), 3);
    }
  }
  return true;
}

void Warper::warp(const Picture& picture, const Matrix& matrix, const WarpOptions& options) {
  const auto [height, width] = picture.size;
  constexpr uint32_t kMostSide = 16'000;  // for which Pillow's 16 bits before the point are enough
  if (height > kMostSide || width > kMostSide) {
    throw Error(ErrorKind::unsupported, fmt::format("a picture of {} x {} pixels: {} are the most",
                                                    width, height, kMostSide));
  }
  switch (options.interpolation) {
    case Resample::nearest:
      return warp_nearest(picture, matrix, options);
    case Resample::bilinear:
    case Resample::bicubic:
      frame_picture(picture, framed_);
      return warp_smoothly(framed_.view(), matrix, options, picture);
    default:
      throw Error(ErrorKind::usage, "interpolation: should be nearest, bilinear or bicubic");
  }
}

void Warper::warp_nearest(const Picture& picture, const Matrix& matrix,
                          const WarpOptions& options) {
  const auto [height, width] = picture.size;
  // 16 bits behind the point, as Pillow has them.
  const auto fixed = [](double value) {
    return static_cast<int64_t>(std::floor(value * 65536 + 0.5));
  };
  const auto& m = matrix;
  const int64_t right = fixed(m[0]);
  const int64_t down = fixed(m[3]);
  int64_t first_x = fixed(m[2] + m[0] * 0.5 + m[1] * 0.5);
  int64_t first_y = fixed(m[5] + m[3] * 0.5 + m[4] * 0.5);
  const uint8_t* from = copy(picture);
  for (size_t row = 0; row < height; ++row) {
    uint8_t* to = picture.row(row);
    int64_t x = first_x;
    int64_t y = first_y;
    for (size_t column = 0; column < width; ++column, to += 3, x += right, y += down) {
      const auto source_x = static_cast<uint64_t>(x >> 16);
      const auto source_y = static_cast<uint64_t>(y >> 16);
      const bool inside = source_x < width && source_y < height;
      std::memcpy(to, inside ? from + 3 * (source_y * width + source_x) : options.fill.data(), 3);
    }
    first_x += fixed(m[1]);
    first_y += fixed(m[4]);
  }
}

}  // namespace stoker
