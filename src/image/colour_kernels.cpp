// SPDX-License-Identifier: Apache-2.0
#include "image/colour_kernels.h"

#include <algorithm>
#include <array>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "image/colour_kernels.cpp"
#include <hwy/foreach_target.h>
// Behind it: this file is compiled once for each kind of vectors.
#include <hwy/highway.h>

// Plain loops over blocks of a fixed length, which compilers turn into vectors. Nothing may be
// contracted to a fused multiply-add: the bits would not be Pillow's. CMakeLists.txt sees to both.

HWY_BEFORE_NAMESPACE();
namespace stoker::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kBlock = 256;  // pixels

struct Block {
  alignas(64) uint8_t red[kBlock];
  alignas(64) uint8_t green[kBlock];
  alignas(64) uint8_t blue[kBlock];
};

HWY_INLINE void split(const uint8_t* HWY_RESTRICT pixels, Block& block) {
  const hn::ScalableTag<uint8_t> d;
  for (size_t i = 0; i < kBlock; i += hn::Lanes(d)) {
    hn::Vec<decltype(d)> red;
    hn::Vec<decltype(d)> green;
    hn::Vec<decltype(d)> blue;
    hn::LoadInterleaved3(d, pixels + 3 * i, red, green, blue);
    hn::Store(red, d, block.red + i);
    hn::Store(green, d, block.green + i);
    hn::Store(blue, d, block.blue + i);
  }
}

HWY_INLINE void join(const Block& block, uint8_t* HWY_RESTRICT pixels) {
  const hn::ScalableTag<uint8_t> d;
  for (size_t i = 0; i < kBlock; i += hn::Lanes(d)) {
    hn::StoreInterleaved3(hn::Load(d, block.red + i), hn::Load(d, block.green + i),
                          hn::Load(d, block.blue + i), d, pixels + 3 * i);
  }
}

/// Calls change(block) for all pixels; the last block is filled up with black.
template <class Change>
HWY_INLINE void change_blocks(uint8_t* pixels, size_t count, const Change& change) {
  Block block;
  for (; count >= kBlock; count -= kBlock, pixels += 3 * kBlock) {
    split(pixels, block);
    change(block);
    join(block, pixels);
  }
  if (count == 0) return;
  std::array<uint8_t, 3 * kBlock> rest{};
  std::memcpy(rest.data(), pixels, 3 * count);
  split(rest.data(), block);
  change(block);
  join(block, rest.data());
  std::memcpy(pixels, rest.data(), 3 * count);
}

/// Pillow's weights, of which the sum is 2^16.
HWY_INLINE uint32_t gray_of(uint32_t red, uint32_t green, uint32_t blue) {
  return (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16;
}

HWY_INLINE uint8_t blend(float from, float to, float factor) {
  float sum = from + factor * (to - from);
  sum = sum > 0 ? sum : 0;
  sum = sum < 255 ? sum : 255;
  return static_cast<uint8_t>(static_cast<int32_t>(sum));
}

struct SumGray {
  uint64_t* sum;

  HWY_INLINE void operator()(Block& block) const {
    uint32_t part = 0;
    for (size_t i = 0; i < kBlock; ++i) {
      part += gray_of(block.red[i], block.green[i], block.blue[i]);
    }
    *sum += part;
  }
};

struct MakeGray {
  HWY_INLINE void operator()(Block& block) const {
    for (size_t i = 0; i < kBlock; ++i) {
      const auto gray = static_cast<uint8_t>(gray_of(block.red[i], block.green[i], block.blue[i]));
      block.red[i] = block.green[i] = block.blue[i] = gray;
    }
  }
};

struct BlendWithGray {
  float factor;

  HWY_INLINE void operator()(Block& block) const {
    for (size_t i = 0; i < kBlock; ++i) {
      const auto gray = static_cast<float>(
          static_cast<int32_t>(gray_of(block.red[i], block.green[i], block.blue[i])));
      block.red[i] = blend(gray, block.red[i], factor);
      block.green[i] = blend(gray, block.green[i], factor);
      block.blue[i] = blend(gray, block.blue[i], factor);
    }
  }
};

/// Of each H, in which sixth of the circle it is, and how far on its way through that.
struct Sixths {
  std::array<uint8_t, 256> number{};
  std::array<float, 256> part{};

  Sixths() {
    for (int h = 0; h < 256; ++h) {
      number[h] = static_cast<uint8_t>(h * 6 / 255 % 6);
      part[h] = static_cast<float>(h * 6.0 / 255.0 - h * 6 / 255);
    }
  }
};

struct ShiftHue {
  uint8_t shift;
  const Sixths& sixths;

  /// Red, green and blue become H, S and V.
  static HWY_INLINE void to_hsv(Block& block) {
    for (size_t i = 0; i < kBlock; ++i) {
      const int32_t red = block.red[i];
      const int32_t green = block.green[i];
      const int32_t blue = block.blue[i];
      const int32_t most = std::max(red, std::max(green, blue));
      const int32_t least = std::min(red, std::min(green, blue));
      const int32_t range = most - least;
      const int32_t middle = red + green + blue - most - least;
      // Pillow adds two quotients, one of which is 1. This is the other; rounded once, as there.
      const float part = static_cast<float>(most - middle) / static_cast<float>(std::max(range, 1));
      int32_t begin = green == most ? 2 : 4;
      begin = red == most ? 0 : begin;
      int32_t falling = green == most ? red : green;
      falling = red == most ? blue : falling;
      const int32_t sign = falling == least ? -1 : 1;
      const float sixths = static_cast<float>(begin - sign) + static_cast<float>(sign) * part;
      double turn = static_cast<double>(sixths) / 6.0 + 1.0;
      turn -= turn < 1.0 ? 0.0 : 1.0;
      const auto hue = static_cast<float>(turn);
      const float saturation = static_cast<float>(range) / static_cast<float>(std::max(most, 1));
      block.red[i] = static_cast<uint8_t>(static_cast<int32_t>(hue * 255.0));
      block.green[i] = static_cast<uint8_t>(static_cast<int32_t>(saturation * 255.0));
      block.blue[i] = static_cast<uint8_t>(most);
    }
  }

  /// What a pixel's red, green and blue are made of: one is V, one the least of the three, one
  /// between them, on its way up or down.
  struct Levels {
    alignas(64) uint8_t sixth[kBlock];
    alignas(64) float part[kBlock];
    alignas(64) uint8_t least[kBlock];
    alignas(64) uint8_t falling[kBlock];
    alignas(64) uint8_t rising[kBlock];
  };

  static HWY_INLINE void find_levels(const Block& block, Levels& levels) {
    for (size_t i = 0; i < kBlock; ++i) {
      const double value = block.blue[i];
      const float saturation = static_cast<float>(block.green[i]) / 255.0F;
      const float part = levels.part[i];
      const float gone = saturation * part;
      levels.least[i] = rounded(value * (1.0 - saturation));
      levels.falling[i] = rounded(value * (1.0 - gone));
      levels.rising[i] = rounded(value * (1.0 - saturation * (1.0 - part)));
    }
  }

  static HWY_INLINE uint8_t rounded(double value) {
    return static_cast<uint8_t>(static_cast<int32_t>(value + 0.5));
  }

  static HWY_INLINE void to_rgb(const Levels& levels, Block& block) {
    for (size_t i = 0; i < kBlock; ++i) {
      const int sixth = levels.sixth[i];
      // All bits set in one of them, none in the others.
      const int in0 = -static_cast<int>(sixth == 0);
      const int in1 = -static_cast<int>(sixth == 1);
      const int in2 = -static_cast<int>(sixth == 2);
      const int in3 = -static_cast<int>(sixth == 3);
      const int in4 = -static_cast<int>(sixth == 4);
      const int in5 = -static_cast<int>(sixth == 5);
      const int most = block.blue[i];
      const int least = levels.least[i];
      const int falling = levels.falling[i];
      const int rising = levels.rising[i];
      block.red[i] = static_cast<uint8_t>((most & (in0 | in5)) | (falling & in1) |
                                          (least & (in2 | in3)) | (rising & in4));
      block.green[i] = static_cast<uint8_t>((most & (in1 | in2)) | (falling & in3) |
                                            (least & (in4 | in5)) | (rising & in0));
      block.blue[i] = static_cast<uint8_t>((most & (in3 | in4)) | (falling & in5) |
                                           (least & (in0 | in1)) | (rising & in2));
    }
  }

  HWY_INLINE void operator()(Block& block) const {
    Levels levels;
    to_hsv(block);
    for (size_t i = 0; i < kBlock; ++i) {
      const auto hue = static_cast<uint8_t>(block.red[i] + shift);
      levels.sixth[i] = sixths.number[hue];
      levels.part[i] = sixths.part[hue];
    }
    find_levels(block, levels);
    to_rgb(levels, block);
  }
};

uint64_t sum_gray(const uint8_t* pixels, size_t count) {
  uint64_t sum = 0;
  const SumGray add{&sum};
  Block block;
  for (; count >= kBlock; count -= kBlock, pixels += 3 * kBlock) {
    split(pixels, block);
    add(block);
  }
  std::array<uint8_t, 3 * kBlock> rest{};
  std::memcpy(rest.data(), pixels, 3 * count);
  split(rest.data(), block);
  add(block);
  return sum;
}

void make_gray(uint8_t* pixels, size_t count) { change_blocks(pixels, count, MakeGray{}); }

void blend_with_gray(uint8_t* pixels, size_t count, float factor) {
  change_blocks(pixels, count, BlendWithGray{factor});
}

void shift_hue(uint8_t* pixels, size_t count, uint8_t shift) {
  static const Sixths sixths;
  change_blocks(pixels, count, ShiftHue{shift, sixths});
}

void blend_with_smoothed(const uint8_t* HWY_RESTRICT above, const uint8_t* HWY_RESTRICT row,
                         const uint8_t* HWY_RESTRICT below, size_t count, float factor,
                         uint8_t* HWY_RESTRICT out) {
  for (size_t i = 3; i + 3 < 3 * count; ++i) {
    const uint32_t sum = above[i - 3] + above[i] + above[i + 3] + row[i - 3] + 5U * row[i] +
                         row[i + 3] + below[i - 3] + below[i] + below[i + 3];
    // sum / 13, rounded. Pillow's sum of floats never comes near a tie: 13 is odd.
    const uint32_t smoothed = ((sum + 6) * 20165) >> 18;
    out[i] = blend(static_cast<float>(static_cast<int32_t>(smoothed)), row[i], factor);
  }
}

}  // namespace stoker::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {
namespace {

HWY_EXPORT(sum_gray);
HWY_EXPORT(make_gray);
HWY_EXPORT(blend_with_gray);
HWY_EXPORT(shift_hue);
HWY_EXPORT(blend_with_smoothed);

}  // namespace

uint64_t sum_gray(const uint8_t* pixels, size_t count) {
  return HWY_DYNAMIC_DISPATCH(sum_gray)(pixels, count);
}

void make_gray(uint8_t* pixels, size_t count) { HWY_DYNAMIC_DISPATCH(make_gray)(pixels, count); }

void blend_with_gray(uint8_t* pixels, size_t count, float factor) {
  HWY_DYNAMIC_DISPATCH(blend_with_gray)(pixels, count, factor);
}

void shift_hue(uint8_t* pixels, size_t count, uint8_t shift) {
  HWY_DYNAMIC_DISPATCH(shift_hue)(pixels, count, shift);
}

void blend_with_smoothed(const uint8_t* above, const uint8_t* row, const uint8_t* below,
                         size_t count, float factor, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(blend_with_smoothed)(above, row, below, count, factor, out);
}

}  // namespace stoker
#endif
