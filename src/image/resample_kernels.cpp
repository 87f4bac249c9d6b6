// SPDX-License-Identifier: Apache-2.0
#include "image/resample_kernels.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "image/resample_kernels.cpp"
#include <hwy/foreach_target.h>
// Behind it: this file is compiled once for each kind of vectors.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

void rows(const PixelView& from, const ResampleWeights& weights, const int32_t* /*packed*/,
          bool flip, PixelBuffer& to) {
  resample_rows_plainly(from, weights, flip, to);
}

void column(const PixelView& from, const ResampleWeights& weights, uint32_t row, uint8_t* to) {
  resample_column_plainly(from, weights, row, to);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

constexpr int kLowBits = 15;

/// What both pieces of the sums come to, rounded and without the bits behind the point.
template <typename V>
HWY_INLINE V finish(V low, V high) {
  const hn::DFromV<V> d;
  const V sum = hn::Add(hn::Add(low, hn::ShiftLeft<kLowBits>(high)),
                        hn::Set(d, 1 << (ResampleWeights::kBits - 1)));
  return hn::ShiftRight<ResampleWeights::kBits>(sum);
}

/// Sums of neighbouring products of 16 bits, added to `sum`.
template <class D32, class V16>
HWY_INLINE hn::Vec<D32> multiply_add(D32 d32, V16 a, V16 b, hn::Vec<D32> sum) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128
  hn::Vec<D32> unused = hn::Zero(d32);  // by this architecture, which adds neighbours
  return hn::ReorderWidenMulAccumulate(d32, a, b, sum, unused);
#else
  const auto wide_a = hn::BitCast(d32, a);
  const auto wide_b = hn::BitCast(d32, b);
  const auto even = hn::Mul(hn::ShiftRight<16>(hn::ShiftLeft<16>(wide_a)),
                            hn::ShiftRight<16>(hn::ShiftLeft<16>(wide_b)));
  const auto odd = hn::Mul(hn::ShiftRight<16>(wide_a), hn::ShiftRight<16>(wide_b));
  return hn::Add(sum, hn::Add(even, odd));
#endif
}

/// Four taps of four-byte pixels at a time; kRows rows share the weights.
template <int kRows>
void rows_kernel(const uint8_t* HWY_RESTRICT from, size_t from_stride,
                 const ResampleWeights& weights, const int32_t* HWY_RESTRICT packed, bool flip,
                 uint8_t* HWY_RESTRICT to, size_t to_stride) {
  const hn::FixedTag<uint8_t, 16> d8;
  const hn::FixedTag<int16_t, 8> d16;
  const hn::FixedTag<int32_t, 4> d32;
  // Pixels 0 and 1, then 2 and 3, as pairs of 16 bits by channel. 0x80: zero.
  alignas(16) static constexpr uint8_t kFirst[16] = {0, 0x80, 4, 0x80, 1, 0x80, 5, 0x80,
                                                     2, 0x80, 6, 0x80, 3, 0x80, 7, 0x80};
  alignas(16) static constexpr uint8_t kSecond[16] = {8,  0x80, 12, 0x80, 9,  0x80, 13, 0x80,
                                                      10, 0x80, 14, 0x80, 11, 0x80, 15, 0x80};
  const auto first = hn::Load(d8, kFirst);
  const auto second = hn::Load(d8, kSecond);
  const auto count = static_cast<uint32_t>(weights.windows.size());
  for (uint32_t x = 0; x < count; ++x) {
    const ResampleWeights::Window window = weights.windows[x];
    const uint8_t* source = from + size_t{window.first} * 4;
    const int32_t* piece = packed + size_t{x} * weights.stride;
    hn::Vec<decltype(d32)> low[kRows];
    hn::Vec<decltype(d32)> high[kRows];
    for (int r = 0; r < kRows; ++r) low[r] = high[r] = hn::Zero(d32);
    for (uint32_t tap = 0; tap < window.count; tap += 4, source += 16, piece += 4) {
      const auto pairs = hn::LoadU(d32, piece);
      const auto low01 = hn::BitCast(d16, hn::Broadcast<0>(pairs));
      const auto low23 = hn::BitCast(d16, hn::Broadcast<1>(pairs));
      const auto high01 = hn::BitCast(d16, hn::Broadcast<2>(pairs));
      const auto high23 = hn::BitCast(d16, hn::Broadcast<3>(pairs));
      for (int r = 0; r < kRows; ++r) {
        const auto pixels = hn::LoadU(d8, source + r * from_stride);
        const auto p01 = hn::BitCast(d16, hn::TableLookupBytesOr0(pixels, first));
        const auto p23 = hn::BitCast(d16, hn::TableLookupBytesOr0(pixels, second));
        low[r] = multiply_add(d32, p01, low01, low[r]);
        low[r] = multiply_add(d32, p23, low23, low[r]);
        high[r] = multiply_add(d32, p01, high01, high[r]);
        high[r] = multiply_add(d32, p23, high23, high[r]);
      }
    }
    uint8_t* out = to + size_t{flip ? count - 1 - x : x} * 4;
    for (int r = 0; r < kRows; ++r) {
      const hn::FixedTag<int16_t, 4> d16_half;
      const hn::FixedTag<uint8_t, 4> d8_quarter;
      const auto sum = finish(low[r], high[r]);
      hn::StoreU(hn::DemoteTo(d8_quarter, hn::DemoteTo(d16_half, sum)), d8_quarter,
                 out + r * to_stride);
    }
  }
}

void rows(const PixelView& from, const ResampleWeights& weights, const int32_t* packed, bool flip,
          PixelBuffer& to) {
  const size_t stride = to.view().stride;
  uint32_t y = 0;
  for (; y + 4 <= from.size.height; y += 4) {
    rows_kernel<4>(from.row(y), from.stride, weights, packed, flip, to.row(y), stride);
  }
  for (; y < from.size.height; ++y) {
    rows_kernel<1>(from.row(y), from.stride, weights, packed, flip, to.row(y), stride);
  }
}

/// Four vectors of 32 bits as one of bytes, cut off at 0 and 255. Blocks of 16 bytes stay what they
/// are, as with the interleaving that this takes back.
template <class D8, class V32>
HWY_INLINE hn::Vec<D8> narrow(D8 d8, V32 a, V32 b, V32 c, V32 d) {
  const hn::Repartition<int16_t, D8> d16;
  const auto cut = [&](auto words) {
    return hn::BitCast(d8, hn::Min(hn::Max(words, hn::Zero(d16)), hn::Set(d16, 255)));
  };
  alignas(16) static constexpr uint8_t kNear[16] = {0,    2,    4,    6,    8,    10,   12,   14,
                                                    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80};
  alignas(16) static constexpr uint8_t kFar[16] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                                   0,    2,    4,    6,    8,    10,   12,   14};
  const auto near =
      hn::TableLookupBytesOr0(cut(hn::ReorderDemote2To(d16, a, b)), hn::LoadDup128(d8, kNear));
  const auto far =
      hn::TableLookupBytesOr0(cut(hn::ReorderDemote2To(d16, c, d)), hn::LoadDup128(d8, kFar));
  return hn::Or(near, far);
}

void column(const PixelView& from, const ResampleWeights& weights, uint32_t row,
            uint8_t* HWY_RESTRICT to) {
  const hn::ScalableTag<uint8_t> d8;
  const hn::Repartition<int16_t, decltype(d8)> d16;
  const hn::Repartition<int32_t, decltype(d8)> d32;
  const size_t lanes = hn::Lanes(d8);
  const ResampleWeights::Window window = weights.windows[row];
  const int32_t* values = weights.values.data() + size_t{row} * weights.stride;
  const size_t bytes = size_t{from.size.width} * 4;
  for (size_t at = 0; at < bytes; at += lanes) {
    auto low0 = hn::Zero(d32), low1 = low0, low2 = low0, low3 = low0;
    auto high0 = low0, high1 = low0, high2 = low0, high3 = low0;
    for (uint32_t tap = 0; tap < window.count; tap += 2) {
      const uint8_t* upper = from.row(window.first + tap) + at;
      // The second of the last pair may not be there; then its weight is 0.
      const uint8_t* lower = tap + 1 < window.count ? upper + from.stride : upper;
      const int32_t a = values[tap];
      const int32_t b = values[tap + 1];
      constexpr int32_t kLow = (1 << kLowBits) - 1;
      const auto low = hn::BitCast(d16, hn::Set(d32, (a & kLow) | (b & kLow) << 16));
      const auto high = hn::BitCast(
          d16, hn::Set(d32, ((a >> kLowBits) & 0xFFFF) | ((b >> kLowBits) & 0xFFFF) << 16));
      const auto u = hn::LoadU(d8, upper);
      const auto l = hn::LoadU(d8, lower);
      const auto zero = hn::Zero(d8);
      const auto near = hn::InterleaveLower(d8, u, l);
      const auto far = hn::InterleaveUpper(d8, u, l);
      const auto p0 = hn::BitCast(d16, hn::InterleaveLower(d8, near, zero));
      const auto p1 = hn::BitCast(d16, hn::InterleaveUpper(d8, near, zero));
      const auto p2 = hn::BitCast(d16, hn::InterleaveLower(d8, far, zero));
      const auto p3 = hn::BitCast(d16, hn::InterleaveUpper(d8, far, zero));
      low0 = multiply_add(d32, p0, low, low0);
      low1 = multiply_add(d32, p1, low, low1);
      low2 = multiply_add(d32, p2, low, low2);
      low3 = multiply_add(d32, p3, low, low3);
      high0 = multiply_add(d32, p0, high, high0);
      high1 = multiply_add(d32, p1, high, high1);
      high2 = multiply_add(d32, p2, high, high2);
      high3 = multiply_add(d32, p3, high, high3);
    }
    hn::StoreU(narrow(d8, finish(low0, high0), finish(low1, high1), finish(low2, high2),
                      finish(low3, high3)),
               d8, to + at);
  }
}

#endif

}  // namespace stoker::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {
namespace {

HWY_EXPORT(rows);
HWY_EXPORT(column);

/// Taps for which the low pieces cannot overflow 32 bits.
constexpr uint32_t kMostTaps = 256;

uint8_t clip(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> ResampleWeights::kBits, 0, 255));
}

}  // namespace

void pack_horizontal(const ResampleWeights& weights, std::vector<int32_t>& packed) {
  packed.resize(weights.values.size());
  constexpr int kLowBits = 15;
  constexpr int32_t kLow = (1 << kLowBits) - 1;
  for (size_t i = 0; i < weights.values.size(); i += 4) {
    const int32_t* v = weights.values.data() + i;
    const auto pair = [](int32_t a, int32_t b) { return (a & 0xFFFF) | b << 16; };
    packed[i] = pair(v[0] & kLow, v[1] & kLow);
    packed[i + 1] = pair(v[2] & kLow, v[3] & kLow);
    packed[i + 2] = pair(v[0] >> kLowBits, v[1] >> kLowBits);
    packed[i + 3] = pair(v[2] >> kLowBits, v[3] >> kLowBits);
  }
}

void resample_rows(const PixelView& from, const ResampleWeights& weights,
                   const std::vector<int32_t>& packed, bool flip, PixelBuffer& to) {
  if (weights.stride > kMostTaps) return resample_rows_plainly(from, weights, flip, to);
  HWY_DYNAMIC_DISPATCH(rows)(from, weights, packed.data(), flip, to);
}

void resample_column(const PixelView& from, const ResampleWeights& weights, uint32_t row,
                     uint8_t* to) {
  if (weights.stride > kMostTaps) return resample_column_plainly(from, weights, row, to);
  HWY_DYNAMIC_DISPATCH(column)(from, weights, row, to);
}

void resample_rows_plainly(const PixelView& from, const ResampleWeights& weights, bool flip,
                           PixelBuffer& to) {
  const size_t count = weights.windows.size();
  for (uint32_t y = 0; y < from.size.height; ++y) {
    for (size_t x = 0; x < count; ++x) {
      const ResampleWeights::Window window = weights.windows[x];
      const uint8_t* source = from.row(y) + size_t{window.first} * 4;
      uint8_t* out = to.row(y) + (flip ? count - 1 - x : x) * 4;
      for (int channel = 0; channel < 4; ++channel) {
        int32_t sum = 1 << (ResampleWeights::kBits - 1);
        for (uint32_t tap = 0; tap < window.count; ++tap) {
          sum += source[tap * 4 + channel] * weights.values[x * weights.stride + tap];
        }
        out[channel] = clip(sum);
      }
    }
  }
}

void resample_column_plainly(const PixelView& from, const ResampleWeights& weights, uint32_t row,
                             uint8_t* to) {
  const ResampleWeights::Window window = weights.windows[row];
  const int32_t* values = weights.values.data() + size_t{row} * weights.stride;
  for (size_t at = 0; at < size_t{from.size.width} * 4; ++at) {
    int32_t sum = 1 << (ResampleWeights::kBits - 1);
    for (uint32_t tap = 0; tap < window.count; ++tap) {
      sum += from.row(window.first + tap)[at] * values[tap];
    }
    to[at] = clip(sum);
  }
}

void pack_row(const uint8_t* from, uint32_t width, bool flip, uint8_t* out) {
  if (flip) {
    for (uint32_t x = 0; x < width; ++x) std::memcpy(out + 3 * x, from + 4 * (width - 1 - x), 3);
    return;
  }
  // Four bytes at a time: the last of each is overwritten by the next pixel.
  uint32_t x = 0;
  for (; x + 1 < width; ++x) std::memcpy(out + 3 * x, from + 4 * x, 4);
  if (x < width) std::memcpy(out + 3 * x, from + 4 * x, 3);
}

}  // namespace stoker
#endif
