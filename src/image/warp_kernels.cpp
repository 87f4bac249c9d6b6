// SPDX-License-Identifier: Apache-2.0
#include "image/warp_kernels.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "image/warp_kernels.cpp"
#include <hwy/foreach_target.h>
// Behind it: this file is compiled once for each kind of vectors.
#include <hwy/highway.h>

// Plain loops over blocks of a fixed length, which compilers turn into vectors. Nothing may be
// contracted to a fused multiply-add: the bits would not be Pillow's. CMakeLists.txt sees to both.

HWY_BEFORE_NAMESPACE();
namespace stoker::HWY_NAMESPACE {

constexpr size_t kBlock = 64;  // pixels of a row

/// Where pixels come from.
struct Places {
  alignas(64) int32_t inside[kBlock];  // 1, or 0
  alignas(64) int32_t offset[kBlock];  // of the pixel to the left and above
  alignas(64) double right[kBlock];    // from there, below 1
  alignas(64) double down[kBlock];
};

HWY_INLINE int32_t floor_of(double value) {
  const auto cut = static_cast<int32_t>(value);
  return cut - static_cast<int32_t>(value < cut);
}

HWY_INLINE void find_places(const double* HWY_RESTRICT m, uint32_t row, uint32_t column, Size size,
                            int32_t stride, Places& places) {
  const double width = size.width;
  const double height = size.height;
  const double y = row + 0.5;
  for (size_t i = 0; i < kBlock; ++i) {
    const double x = static_cast<int32_t>(column + i) + 0.5;
    const double right = m[0] * x + m[1] * y + m[2];
    const double down = m[3] * x + m[4] * y + m[5];
    const int32_t inside = static_cast<int32_t>(right >= 0) & static_cast<int32_t>(right < width) &
                           static_cast<int32_t>(down >= 0) & static_cast<int32_t>(down < height);
    const int32_t from_x = floor_of(right - 0.5);
    const int32_t from_y = floor_of(down - 0.5);
    places.inside[i] = inside;
    places.offset[i] = inside * from_y * stride + inside * from_x * 4;
    places.right[i] = right - 0.5 - from_x;
    places.down[i] = down - 0.5 - from_y;
  }
}

/// Pixels of kSide x kSide places around each place; kBefore of the columns and rows lie before it.
template <int kSide, int kBefore>
struct Around {
  alignas(64) uint32_t pixels[kSide][kSide][kBlock];

  HWY_INLINE void load(const uint8_t* origin, size_t stride, const Places& places) {
    origin -= kBefore * (stride + 4);
    for (size_t i = 0; i < kBlock; ++i) {
      const uint8_t* from = origin + places.offset[i];
      for (int y = 0; y < kSide; ++y) {
        for (int x = 0; x < kSide; ++x) std::memcpy(&pixels[y][x][i], from + y * stride + 4 * x, 4);
      }
    }
  }
};

HWY_INLINE double value_of(uint32_t pixel, int channel) {
  return static_cast<int32_t>(pixel >> (8 * channel) & 0xFF);
}

HWY_INLINE double linear(double a, double b, double part) { return a + (b - a) * part; }

/// Between b and c, with the slopes that their neighbours say.
HWY_INLINE double cubic(double a, double b, double c, double d, double part) {
  const double first = -a + c;
  const double second = 2 * (a - b) + c - d;
  const double third = -a + b - c + d;
  return b + part * (first + part * (second + part * third));
}

HWY_INLINE uint32_t cut_off(double value) {
  value = value > 0 ? value : 0;
  value = value < 255 ? value : 255;
  return static_cast<uint32_t>(static_cast<int32_t>(value));
}

struct Bilinear {
  Around<2, 0> around;

  HWY_INLINE uint32_t at(size_t i, int channel, double right, double down) const {
    double rows[2];
    for (int y = 0; y < 2; ++y) {
      rows[y] = linear(value_of(around.pixels[y][0][i], channel),
                       value_of(around.pixels[y][1][i], channel), right);
    }
    return cut_off(linear(rows[0], rows[1], down));
  }
};

struct Bicubic {
  Around<4, 1> around;

  HWY_INLINE uint32_t at(size_t i, int channel, double right, double down) const {
    double rows[4];
    for (int y = 0; y < 4; ++y) {
      const auto& row = around.pixels[y];
      rows[y] = cubic(value_of(row[0][i], channel), value_of(row[1][i], channel),
                      value_of(row[2][i], channel), value_of(row[3][i], channel), right);
    }
    return cut_off(cubic(rows[0], rows[1], rows[2], rows[3], down));
  }
};

template <class Interpolation>
HWY_INLINE void warp_with(const PixelView& framed, const double* m, const uint8_t* fill,
                          const Picture& picture) {
  const uint8_t* origin = framed.row(kFrame) + 4 * kFrame;
  const uint32_t outside = fill[0] | uint32_t{fill[1]} << 8 | uint32_t{fill[2]} << 16;
  const auto stride = static_cast<int32_t>(framed.stride);
  Places places;
  Interpolation interpolation;
  alignas(64) uint32_t out[kBlock];
  for (uint32_t row = 0; row < picture.size.height; ++row) {
    for (uint32_t column = 0; column < picture.size.width; column += kBlock) {
      find_places(m, row, column, picture.size, stride, places);
      interpolation.around.load(origin, framed.stride, places);
      for (size_t i = 0; i < kBlock; ++i) {
        const double right = places.right[i];
        const double down = places.down[i];
        const uint32_t pixel = interpolation.at(i, 0, right, down) |
                               interpolation.at(i, 1, right, down) << 8 |
                               interpolation.at(i, 2, right, down) << 16;
        out[i] = places.inside[i] != 0 ? pixel : outside;
      }
      const size_t count = std::min<size_t>(kBlock, picture.size.width - column);
      uint8_t* to = picture.row(row) + size_t{column} * 3;
      for (size_t i = 0; i < count; ++i) std::memcpy(to + 3 * i, &out[i], 3);
    }
  }
}

void warp_bilinear(const PixelView& framed, const double* m, const uint8_t* fill,
                   const Picture& picture) {
  warp_with<Bilinear>(framed, m, fill, picture);
}

void warp_bicubic(const PixelView& framed, const double* m, const uint8_t* fill,
                  const Picture& picture) {
  warp_with<Bicubic>(framed, m, fill, picture);
}

}  // namespace stoker::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {
namespace {

HWY_EXPORT(warp_bilinear);
HWY_EXPORT(warp_bicubic);

}  // namespace

void warp_smoothly(const PixelView& framed, const std::array<double, 6>& matrix,
                   const WarpOptions& options, const Picture& picture) {
  if (options.interpolation == Resample::bilinear) {
    HWY_DYNAMIC_DISPATCH(warp_bilinear)(framed, matrix.data(), options.fill.data(), picture);
  } else {
    HWY_DYNAMIC_DISPATCH(warp_bicubic)(framed, matrix.data(), options.fill.data(), picture);
  }
}

}  // namespace stoker
#endif
