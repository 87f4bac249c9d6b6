// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

// Behind <cstdio>, which it does not include itself.
#include <jpeglib.h>

#include "base/hash.h"
#include "probe/measurements.h"

namespace stoker {
namespace {

constexpr unsigned kWidth = 500, kHeight = 375;
constexpr int kQuality = 90;

/// A number in [0, 1) for a point of a lattice.
double lattice(uint64_t seed, uint64_t x, uint64_t y) {
  return static_cast<double>(mix64(seed + mix64(x + 1) * 3 + mix64(y + 7) * 5) >> 40) / (1 << 24);
}

/// Noise whose points lie `cell` pixels apart, smooth in between.
double smooth_noise(uint64_t seed, double x, double y, double cell) {
  const double u = x / cell, v = y / cell;
  const auto i = static_cast<uint64_t>(u), j = static_cast<uint64_t>(v);
  const double s = u - static_cast<double>(i), t = v - static_cast<double>(j);
  const double a = s * s * (3 - 2 * s), b = t * t * (3 - 2 * t);
  return (lattice(seed, i, j) * (1 - a) + lattice(seed, i + 1, j) * a) * (1 - b) +
         (lattice(seed, i, j + 1) * (1 - a) + lattice(seed, i + 1, j + 1) * a) * b;
}

std::vector<uint8_t> pixels_of(uint64_t seed) {
  std::vector<uint8_t> pixels(size_t{kWidth} * kHeight * 3);
  for (unsigned y = 0; y < kHeight; ++y) {
    for (unsigned x = 0; x < kWidth; ++x) {
      const double fine = 24 * (smooth_noise(seed + 9, x, y, 3) + lattice(seed + 8, x, y) - 1);
      for (unsigned c = 0; c < 3; ++c) {
        const double coarse =
            80 * smooth_noise(seed + c, x, y, 90) + 110 * smooth_noise(seed + 4, x, y, 25) + 50;
        pixels[(size_t{y} * kWidth + x) * 3 + c] =
            static_cast<uint8_t>(std::clamp(coarse + 2.4 * fine, 0.0, 255.0));
      }
    }
  }
  return pixels;
}

std::string compressed(const std::vector<uint8_t>& pixels) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);  // of valid pixels into memory nothing can fail but memory
  jpeg_create_compress(&info);
  unsigned char* data = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &data, &size);
  info.image_width = kWidth;
  info.image_height = kHeight;
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, kQuality, TRUE);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < kHeight) {
    auto* row = const_cast<JSAMPLE*>(pixels.data() + size_t{info.next_scanline} * kWidth * 3);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string bytes(reinterpret_cast<const char*>(data), size);
  std::free(data);
  return bytes;
}

}  // namespace

std::vector<std::string> generated_photos(unsigned count) {
  std::vector<std::string> photos;
  for (unsigned i = 0; i < count; ++i) photos.push_back(compressed(pixels_of(1000 * i)));
  return photos;
}

}  // namespace stoker
