// SPDX-License-Identifier: Apache-2.0
#include "image/resample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/bytes.h"
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

/// Input pixel of each output pixel that is wanted, counted from the first one used; returns which
/// that is, and how many are used.
ResampleWeights::Window nearest_table(uint32_t in, uint32_t out, uint32_t begin, uint32_t count,
                                      std::vector<uint32_t>& table) {
  table.clear();
  // Added up like this in Pillow: multiplying would round otherwise.
  const double step = static_cast<double>(in) / out;
  double at = step * 0.5;
  for (uint32_t i = 0; i < begin + count; ++i, at += step) {
    if (i >= begin) table.push_back(std::min(static_cast<uint32_t>(at), in - 1));
  }
  const uint32_t first = table.front();
  for (uint32_t& pixel : table) pixel -= first;
  return {first, table.back() + 1};
}

}  // namespace

std::optional<Resample> find_resample(std::string_view name) {
  for (const Filter& filter : kFilters) {
    if (filter.name == name) return filter.filter;
  }
  return std::nullopt;
}

void ResampleWeights::set(uint32_t in, uint32_t out, uint32_t begin, uint32_t wanted,
                          Resample filter) {
  const Filter& kind = kFilters[static_cast<size_t>(filter)];
  // The one that most use is worth a loop of its own, without calls.
  if (filter == Resample::bilinear) {
    return fill(in, out, begin, wanted, kind.support, [](double x) { return bilinear(x); });
  }
  fill(in, out, begin, wanted, kind.support, kind.weight);
}

template <typename Weight>
void ResampleWeights::fill(uint32_t in, uint32_t out, uint32_t begin, uint32_t wanted,
                           double filter_support, Weight weight_of) {
  const double scale = static_cast<double>(in) / out;
  const double filter_scale = std::max(scale, 1.0);
  const double support = filter_support * filter_scale;
  const double inverse = 1.0 / filter_scale;
  stride = (static_cast<uint32_t>(std::ceil(support)) * 2 + 1 + 3) / 4 * 4;
  windows.resize(wanted);
  values.assign(size_t{wanted} * stride, 0);
  std::vector<double> weights(stride);
  for (uint32_t i = 0; i < wanted; ++i) {
    const double center = (begin + i + 0.5) * scale;
    const int first = std::max(static_cast<int>(center - support + 0.5), 0);
    const int last = std::min(static_cast<int>(center + support + 0.5), static_cast<int>(in));
    const int count = last - first;
    double sum = 0;
    for (int k = 0; k < count; ++k) {
      weights[k] = weight_of((k + first - center + 0.5) * inverse);
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

ResampleWeights::Window ResampleWeights::make_relative() {
  const uint32_t first = windows.front().first;
  uint32_t end = 0;
  for (Window& window : windows) {
    end = std::max(end, window.first + window.count);
    window.first -= first;
  }
  return {first, end - first};
}

Region Resampler::plan(const Resizing& resizing) {
  resizing_ = resizing;
  const auto& [from, to, window, filter] = resizing;
  ResampleWeights::Window across{window.left, window.width};
  ResampleWeights::Window down{window.top, window.height};
  if (filter == Resample::nearest) {
    across = nearest_table(from.width, to.width, window.left, window.width, nearest_columns_);
    down = nearest_table(from.height, to.height, window.top, window.height, nearest_rows_);
    part_ = {down.count, across.count};
    return {down.first, across.first, down.count, across.count};
  }
  // What keeps its length is left alone, not filtered.
  if (from.width != to.width) {
    columns_.set(from.width, to.width, window.left, window.width, filter);
    across = columns_.make_relative();
  }
  if (from.height != to.height) {
    rows_.set(from.height, to.height, window.top, window.height, filter);
    down = rows_.make_relative();
  }
  part_ = {down.count, across.count};
  return {down.first, across.first, down.count, across.count};
}

void Resampler::run_nearest(const PixelView& part, bool flip, uint8_t* out,
                            size_t out_stride) const {
  const size_t width = nearest_columns_.size();
  for (size_t y = 0; y < nearest_rows_.size(); ++y) {
    const uint8_t* row = part.row(nearest_rows_[y]);
    uint8_t* to = out + y * out_stride;
    for (size_t x = 0; x < width; ++x) {
      const uint32_t column = nearest_columns_[flip ? width - 1 - x : x];
      std::memcpy(to + 3 * x, row + 4 * size_t{column}, 3);
    }
  }
}

PixelView Resampler::change_width(const PixelView& image, bool flip) {
  wider_.resize({image.size.height, resizing_.window.width});
  pack_weights(columns_, flip, packed_);
  resample_rows(image, columns_, packed_, wider_, 0);
  return wider_.view();
}

PixelView Resampler::change_height(const PixelView& image) {
  const uint32_t height = resizing_.window.height;
  higher_.resize({height, image.size.width});
  for (uint32_t y = 0; y < height; ++y) {
    resample_column(image, size_t{image.size.width} * 4, rows_, y, higher_.row(y));
  }
  return higher_.view();
}

/// Each pass rounds to eight bits, so the order shows. This is how Pillow 13 decides.
bool Resampler::height_first() const {
  const auto& [from, to, window, filter] = resizing_;
  const int64_t narrower = int64_t{from.width} - to.width;
  const int64_t lower = int64_t{from.height} - to.height;
  return lower > 0 && 2 * narrower < lower;
}

void Resampler::run(const PixelView& part, bool flip, uint8_t* out, size_t out_stride) {
  const auto& [from, to, window, filter] = resizing_;
  if (filter == Resample::nearest) return run_nearest(part, flip, out, out_stride);
  PixelView image = part;
  if (height_first()) image = change_height(image);
  if (from.width == to.width) return write(image, 4, flip, out, out_stride);
  image = change_width(image, flip);
  write(image, packed_.pixel_bytes, false, out, out_stride);
}

/// What is left to do once the width is right.
void Resampler::write(const PixelView& image, size_t pixel_bytes, bool flip, uint8_t* out,
                      size_t out_stride) {
  const auto& [from, to, window, filter] = resizing_;
  const bool is_done = from.height == to.height || height_first();
  const size_t bytes = window.width * pixel_bytes;
  if (!is_done) higher_.resize({1, window.width});
  for (uint32_t y = 0; y < window.height; ++y, out += out_stride) {
    const uint8_t* row = is_done ? image.row(y) : higher_.row(0);
    if (!is_done) resample_column(image, bytes, rows_, y, higher_.row(0));
    if (pixel_bytes == 4) {
      pack_row(row, window.width, flip, out);
    } else {
      std::memcpy(out, row, bytes);
    }
  }
}

PixelRows* Resampler::take_rows(bool flip) {
  const auto& [from, to, window, filter] = resizing_;
  if (filter == Resample::nearest || from.width == to.width || height_first()) return nullptr;
  staged_ = changed_ = 0;
  stage_.resize({kStaged, part_.width});
  wider_.resize({part_.height + 4, window.width});
  pack_weights(columns_, flip, packed_);
  return this;
}

uint8_t* Resampler::next() {
  if (staged_ == kStaged) change_staged();
  return stage_.row(staged_++);
}

void Resampler::change_staged() {
  PixelView rows = stage_.view();
  // By the four, of which the last may be rows of nothing: fewer would be changed one by one.
  rows.size.height = static_cast<uint32_t>(round_up(staged_, 4));
  resample_rows(rows, columns_, packed_, wider_, changed_);
  changed_ += staged_;
  staged_ = 0;
}

void Resampler::finish(uint8_t* out, size_t out_stride) {
  change_staged();
  PixelView image = wider_.view();
  image.size.height = part_.height;
  write(image, packed_.pixel_bytes, false, out, out_stride);
}

}  // namespace stoker
