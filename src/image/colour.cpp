// SPDX-License-Identifier: Apache-2.0
#include "image/colour.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include "image/colour_kernels.h"

namespace stoker {
namespace {

/// What becomes of each value.
using Table = std::array<uint8_t, 256>;
using Tables = std::array<Table, 3>;  // by channel
using Histogram = std::array<uint32_t, 256>;

Table identity() {
  Table table;
  std::iota(table.begin(), table.end(), uint8_t{0});
  return table;
}

void look_up(const Picture& picture, const Table& table) {
  uint8_t* const end = picture.data + picture.bytes();
  for (uint8_t* at = picture.data; at != end; ++at) *at = table[*at];
}

void look_up(const Picture& picture, const Tables& tables) {
  uint8_t* const end = picture.data + picture.bytes();
  for (uint8_t* at = picture.data; at != end; at += 3) {
    at[0] = tables[0][at[0]];
    at[1] = tables[1][at[1]];
    at[2] = tables[2][at[2]];
  }
}

/// Pillow's Image.blend of a picture that has one value everywhere with any other.
Table blend_from(uint8_t value, double factor) {
  const auto share = static_cast<float>(factor);
  const auto from = static_cast<float>(value);
  Table table;
  for (int i = 0; i < 256; ++i) {
    const float sum = from + share * static_cast<float>(i - value);
    table[i] = static_cast<uint8_t>(std::clamp(sum, 0.0F, 255.0F));
  }
  return table;
}

/// How often each value occurs. Pixels take turns between two counts, because equal neighbours
/// would wait for each other.
std::array<Histogram, 3> count_values(const Picture& picture) {
  std::array<std::array<Histogram, 3>, 2> counts{};
  const size_t pixels = picture.pixels();
  for (size_t i = 0; i < pixels; ++i) {
    const uint8_t* pixel = picture.data + 3 * i;
    std::array<Histogram, 3>& count = counts[i % 2];
    for (int channel = 0; channel < 3; ++channel) ++count[channel][pixel[channel]];
  }
  for (int channel = 0; channel < 3; ++channel) {
    for (int i = 0; i < 256; ++i) counts[0][channel][i] += counts[1][channel][i];
  }
  return counts[0];
}

Table stretch(const Histogram& histogram) {
  const auto used = [](uint32_t count) { return count != 0; };
  const auto first = std::find_if(histogram.begin(), histogram.end(), used);
  const auto last = std::find_if(histogram.rbegin(), histogram.rend(), used);
  const auto low = static_cast<int>(first - histogram.begin());
  const auto high = static_cast<int>(histogram.rend() - last) - 1;
  if (high <= low) return identity();
  const double scale = 255.0 / (high - low);
  const double offset = -low * scale;
  Table table;
  for (int i = 0; i < 256; ++i) {
    table[i] = static_cast<uint8_t>(std::clamp(i * scale + offset, 0.0, 255.0));
  }
  return table;
}

Table level(const Histogram& histogram) {
  const auto last =
      std::find_if(histogram.rbegin(), histogram.rend(), [](uint32_t count) { return count != 0; });
  const uint64_t pixels = std::accumulate(histogram.begin(), histogram.end(), uint64_t{0});
  const uint64_t step = (pixels - *last) / 255;
  if (step == 0) return identity();
  Table table;
  uint64_t below = step / 2;
  for (int i = 0; i < 256; ++i) {
    table[i] = static_cast<uint8_t>(std::min<uint64_t>(below / step, 255));
    below += histogram[i];
  }
  return table;
}

}  // namespace

void adjust_brightness(const Picture& picture, double factor) {
  look_up(picture, blend_from(0, factor));
}

void adjust_contrast(const Picture& picture, double factor) {
  const auto sum = static_cast<double>(sum_gray(picture.data, picture.pixels()));
  const double mean = sum / static_cast<double>(picture.pixels());
  look_up(picture, blend_from(static_cast<uint8_t>(mean + 0.5), factor));
}

void adjust_saturation(const Picture& picture, double factor) {
  blend_with_gray(picture.data, picture.pixels(), static_cast<float>(factor));
}

void adjust_sharpness(const Picture& picture, double factor) {
  const auto [height, width] = picture.size;
  if (height < 3 || width < 3) return;
  const size_t stride = picture.stride();
  std::vector<uint8_t> rows(2 * stride);  // as they were: the one above, this one
  uint8_t* above = rows.data();
  uint8_t* row = above + stride;
  std::memcpy(above, picture.data, stride);
  for (size_t y = 1; y + 1 < height; ++y) {
    std::memcpy(row, picture.row(y), stride);
    blend_with_smoothed(above, row, picture.row(y + 1), width, static_cast<float>(factor),
                        picture.row(y));
    std::swap(above, row);
  }
}

void adjust_hue(const Picture& picture, double factor) {
  const auto shift = static_cast<uint8_t>(static_cast<int32_t>(factor * 255));
  shift_hue(picture.data, picture.pixels(), shift);
}

void posterize(const Picture& picture, unsigned bits) {
  Table table;
  for (unsigned i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(i & (0xFF00U >> bits));
  look_up(picture, table);
}

void solarize(const Picture& picture, double threshold) {
  Table table;
  for (int i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(i < threshold ? i : 255 - i);
  look_up(picture, table);
}

void autocontrast(const Picture& picture) {
  const auto counts = count_values(picture);
  look_up(picture, Tables{stretch(counts[0]), stretch(counts[1]), stretch(counts[2])});
}

void equalize(const Picture& picture) {
  const auto counts = count_values(picture);
  look_up(picture, Tables{level(counts[0]), level(counts[1]), level(counts[2])});
}

void invert(const Picture& picture) {
  Table table = identity();
  std::reverse(table.begin(), table.end());
  look_up(picture, table);
}

void make_grayscale(const Picture& picture) { make_gray(picture.data, picture.pixels()); }

}  // namespace stoker
