// SPDX-License-Identifier: Apache-2.0
#include "image/resample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>

#include "image/resample_kernels.h"

namespace stoker {
namespace {

struct Filter {
  std::string_view name;
  Resample filter;
  double (*weight)(double x);
  double support;
};

double box(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

double bilinear(double x) {
  x = std::fabs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

double bicubic(double x) {
  constexpr double kA = -0.5;
  x = std::fabs(x);
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0.0;
}

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double lanczos(double x) { return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0; }

constexpr std::array<Filter, 5> kFilters = {{
    {"nearest", Resample::nearest, nullptr, 0},
    {"box", Resample::box, box, 0.5},
    {"bilinear", Resample::bilinear, bilinear, 1.0},
    {"bicubic", Resample::bicubic, bicubic, 2.0},
    {"lanczos", Resample::lanczos, lanczos, 3.0},
}};

/// Input pixel of each output pixel, or none where rounding leads outside.
std::vector<uint32_t> nearest_table(uint32_t in, uint32_t out) {
  std::vector<uint32_t> table(out);
  // Added up like this in Pillow: multiplying would round otherwise.
  const double step = static_cast<double>(in) / out;
  double at = step * 0.5;
  for (uint32_t i = 0; i < out; ++i, at += step) {
    table[i] = std::min(static_cast<uint32_t>(at), in - 1);
  }
  return table;
}

}  // namespace

std::optional<Resample> find_resample(std::string_view name) {
  for (const Filter& filter : kFilters) {
    if (filter.name == name) return filter.filter;
  }
  return std::nullopt;
}

void ResampleWeights::set(uint32_t in, uint32_t out, Resample filter) {
  const Filter& kind = kFilters[static_cast<size_t>(filter)];
  const double scale = static_cast<double>(in) / out;
  const double filter_scale = std::max(scale, 1.0);
  const double support = kind.support * filter_scale;
  const double inverse = 1.0 / filter_scale;
  stride = (static_cast<uint32_t>(std::ceil(support)) * 2 + 1 + 3) / 4 * 4;
  windows.resize(out);
  values.assign(size_t{out} * stride, 0);
  std::vector<double> weights(stride);
  for (uint32_t i = 0; i < out; ++i) {
    const double center = (i + 0.5) * scale;
    const int first = std::max(static_cast<int>(center - support + 0.5), 0);
    const int last = std::min(static_cast<int>(center + support + 0.5), static_cast<int>(in));
    const int count = last - first;
    double sum = 0;
    for (int k = 0; k < count; ++k) {
      weights[k] = kind.weight((k + first - center + 0.5) * inverse);
      sum += weights[k];
    }
    windows[i] = {static_cast<uint32_t>(first), static_cast<uint32_t>(count)};
    int32_t* fixed = values.data() + size_t{i} * stride;
    for (int k = 0; k < count; ++k) {
      const double weight = sum != 0.0 ? weights[k] / sum : weights[k];
      fixed[k] = static_cast<int32_t>((weight < 0 ? -0.5 : 0.5) + weight * (1 << kBits));
    }
  }
}

void Resampler::run_nearest(const PixelView& from, Size size, bool flip, uint8_t* out,
                            size_t out_stride) {
  std::vector<uint32_t> columns = nearest_table(from.size.width, size.width);
  if (flip) std::reverse(columns.begin(), columns.end());
  const std::vector<uint32_t> rows = nearest_table(from.size.height, size.height);
  for (uint32_t y = 0; y < size.height; ++y) {
    const uint8_t* row = from.row(rows[y]);
    uint8_t* to = out + y * out_stride;
    for (uint32_t x = 0; x < size.width; ++x) std::memcpy(to + 3 * x, row + 4 * columns[x], 3);
  }
}

PixelView Resampler::change_width(const PixelView& image, uint32_t width, Resample filter,
                                  bool flip) {
  weights_.set(image.size.width, width, filter);
  pack_horizontal(weights_, packed_);
  wider_.resize({image.size.height, width});
  resample_rows(image, weights_, packed_, flip, wider_);
  return wider_.view();
}

PixelView Resampler::change_height(const PixelView& image, uint32_t height, Resample filter) {
  weights_.set(image.size.height, height, filter);
  higher_.resize({height, image.size.width});
  for (uint32_t y = 0; y < height; ++y) resample_column(image, weights_, y, higher_.row(y));
  return higher_.view();
}

void Resampler::run(const PixelView& from, Size size, Resample filter, bool flip, uint8_t* out,
                    size_t out_stride) {
  if (filter == Resample::nearest) return run_nearest(from, size, flip, out, out_stride);
  PixelView image = from;
  // Each pass rounds to eight bits, so the order shows. This is how Pillow 13 decides.
  const int64_t narrower = int64_t{from.size.width} - size.width;
  const int64_t lower = int64_t{from.size.height} - size.height;
  if (lower > 0 && 2 * narrower < lower) image = change_height(image, size.height, filter);
  if (image.size.width != size.width) {
    image = change_width(image, size.width, filter, flip);
    flip = false;
  }
  if (image.size.height != size.height) image = change_height(image, size.height, filter);
  for (uint32_t y = 0; y < size.height; ++y) {
    pack_row(image.row(y), size.width, flip, out + y * out_stride);
  }
}

}  // namespace stoker
