// SPDX-License-Identifier: Apache-2.0
#include "image/resample_kernels.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "image/resample_kernels.cpp"
#include <hwy/foreach_target.h>
// Behind it: this file is compiled once for each kind of vectors.
#include <hwy/highway.h>

// The dot product of bytes, which Highway 1.0 does not know, is in all CPUs that have the rest of
// this.
#if HWY_TARGET == HWY_AVX3_DL
HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512vnni")
#else
HWY_BEFORE_NAMESPACE();
#endif
namespace stoker::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

void pack_all(const ResampleWeights& /*weights*/, PackedWeights& /*packed*/) {}

void rows(const PixelView& from, const ResampleWeights& weights, const PackedWeights& packed,
          PixelBuffer& to, uint32_t to_row) {
  resample_rows_plainly(from, weights, packed.flip, to, to_row);
}

void column(const PixelView& from, size_t bytes, const ResampleWeights& weights, uint32_t row,
            uint8_t* to) {
  resample_column_plainly(from, bytes, weights, row, to);
}

void pack(const uint8_t* from, uint32_t width, bool flip, uint8_t* out) {
  pack_row_plainly(from, width, flip, out);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

/// Four taps at a time: of these many weights all are packed together.
constexpr uint32_t kTaps = 4;

#if HWY_TARGET == HWY_AVX3_DL

/// Weights of four taps: three words, each of four bytes with a sign, the lowest first.
constexpr uint32_t kWords = 3;

HWY_INLINE void pack_four(const int32_t* weights, int32_t* words) {
  words[0] = words[1] = words[2] = 0;
  for (uint32_t tap = 0; tap < kTaps; ++tap) {
    int32_t rest = weights[tap];
    for (uint32_t piece = 0; piece < kWords; ++piece) {
      const auto digit = static_cast<int8_t>(rest);
      words[piece] |= static_cast<int32_t>(uint32_t{static_cast<uint8_t>(digit)} << (8 * tap));
      rest = (rest - digit) / 256;
    }
  }
}

/// Sums of weighted pixels: for each of the three pieces of the weights one.
template <class D32>
struct Sums {
  using V = hn::Vec<D32>;
  using V8 = hn::Vec<hn::Repartition<uint8_t, D32> >;
  V low, middle, high;

  HWY_INLINE Sums() { low = middle = high = hn::Zero(D32()); }

  /// Each lane of `quads`: four taps of one channel.
  HWY_INLINE void add_quads(V8 quads, const int32_t* words) {
    low.raw = _mm512_dpbusd_epi32(low.raw, quads.raw, _mm512_set1_epi32(words[0]));
    middle.raw = _mm512_dpbusd_epi32(middle.raw, quads.raw, _mm512_set1_epi32(words[1]));
    high.raw = _mm512_dpbusd_epi32(high.raw, quads.raw, _mm512_set1_epi32(words[2]));
  }
  /// Four taps of pixels that lie one behind the other.
  HWY_INLINE void add_pixels(V8 pixels, const int32_t* words) {
    const hn::DFromV<V8> d8;
    alignas(16) static constexpr uint8_t kByChannel[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                           2, 6, 10, 14, 3, 7, 11, 15};
    add_quads(hn::TableLookupBytes(pixels, hn::LoadDup128(d8, kByChannel)), words);
  }
  HWY_INLINE V total() const {
    return hn::Add(low, hn::Add(hn::ShiftLeft<8>(middle), hn::ShiftLeft<16>(high)));
  }
};

/// The sums of a column of bytes: four of 32 bits for each vector of bytes.
template <class D8>
struct ColumnSums {
  using D32 = hn::Repartition<int32_t, D8>;
  using V8 = hn::Vec<D8>;
  Sums<D32> parts[4];

  HWY_INLINE ColumnSums() {}  // NOLINT(modernize-use-equals-default): for these vectors
  HWY_INLINE void add(V8 r0, V8 r1, V8 r2, V8 r3, const int32_t* words) {
    const D8 d8;
    const hn::Repartition<uint16_t, D8> d16;
    const auto interleave = [&](V8 upper, V8 lower, size_t part) {
      const auto u = hn::BitCast(d16, upper);
      const auto l = hn::BitCast(d16, lower);
      parts[part].add_quads(hn::BitCast(d8, hn::InterleaveLower(d16, u, l)), words);
      parts[part + 1].add_quads(hn::BitCast(d8, hn::InterleaveUpper(d16, u, l)), words);
    };
    interleave(hn::InterleaveLower(d8, r0, r1), hn::InterleaveLower(d8, r2, r3), 0);
    interleave(hn::InterleaveUpper(d8, r0, r1), hn::InterleaveUpper(d8, r2, r3), 2);
  }
};

#else

constexpr int kLowBits = 15;
/// Weights of four taps: the low pieces of the first two, of the others, then the high pieces.
constexpr uint32_t kWords = 4;

HWY_INLINE void pack_four(const int32_t* weights, int32_t* words) {
  constexpr int32_t kLow = (1 << kLowBits) - 1;
  const auto pair = [](int32_t a, int32_t b) {
    return static_cast<int32_t>((static_cast<uint32_t>(a) & 0xFFFFU) | static_cast<uint32_t>(b)
                                                                           << 16);
  };
  words[0] = pair(weights[0] & kLow, weights[1] & kLow);
  words[1] = pair(weights[2] & kLow, weights[3] & kLow);
  words[2] = pair(weights[0] >> kLowBits, weights[1] >> kLowBits);
  words[3] = pair(weights[2] >> kLowBits, weights[3] >> kLowBits);
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

/// Sums of weighted pixels: for each of the two pieces of the weights one.
template <class D32>
struct Sums {
  using V = hn::Vec<D32>;
  using D16 = hn::Repartition<int16_t, D32>;
  using D8 = hn::Repartition<uint8_t, D32>;
  V low, high;

  HWY_INLINE Sums() { low = high = hn::Zero(D32()); }

  /// Each lane of `pairs`: two taps of one channel as 16 bits each. `half`: which of four taps.
  template <int kHalf>
  HWY_INLINE void add_pairs(hn::Vec<D8> pairs, const int32_t* words) {
    const D32 d32;
    const D16 d16;
    const auto pixels = hn::BitCast(d16, pairs);
    low = multiply_add(d32, pixels, hn::BitCast(d16, hn::Set(d32, words[kHalf])), low);
    high = multiply_add(d32, pixels, hn::BitCast(d16, hn::Set(d32, words[2 + kHalf])), high);
  }
  /// Four taps of pixels that lie one behind the other.
  HWY_INLINE void add_pixels(hn::Vec<D8> pixels, const int32_t* words) {
    const D8 d8;
    // Pixels 0 and 1, then 2 and 3, as pairs of 16 bits by channel. 0x80: zero.
    alignas(16) static constexpr uint8_t kFirst[16] = {0, 0x80, 4, 0x80, 1, 0x80, 5, 0x80,
                                                       2, 0x80, 6, 0x80, 3, 0x80, 7, 0x80};
    alignas(16) static constexpr uint8_t kSecond[16] = {8,  0x80, 12, 0x80, 9,  0x80, 13, 0x80,
                                                        10, 0x80, 14, 0x80, 11, 0x80, 15, 0x80};
    add_pairs<0>(hn::TableLookupBytesOr0(pixels, hn::LoadDup128(d8, kFirst)), words);
    add_pairs<1>(hn::TableLookupBytesOr0(pixels, hn::LoadDup128(d8, kSecond)), words);
  }
  HWY_INLINE V total() const { return hn::Add(low, hn::ShiftLeft<kLowBits>(high)); }
};

/// The sums of a column of bytes: four of 32 bits for each vector of bytes.
template <class D8>
struct ColumnSums {
  using D32 = hn::Repartition<int32_t, D8>;
  using V8 = hn::Vec<D8>;
  Sums<D32> parts[4];

  HWY_INLINE ColumnSums() {}  // NOLINT(modernize-use-equals-default): for these vectors
  template <int kHalf>
  HWY_INLINE void add_two(V8 upper, V8 lower, const int32_t* words) {
    const D8 d8;
    const auto zero = hn::Zero(d8);
    const auto near = hn::InterleaveLower(d8, upper, lower);
    const auto far = hn::InterleaveUpper(d8, upper, lower);
    parts[0].template add_pairs<kHalf>(hn::InterleaveLower(d8, near, zero), words);
    parts[1].template add_pairs<kHalf>(hn::InterleaveUpper(d8, near, zero), words);
    parts[2].template add_pairs<kHalf>(hn::InterleaveLower(d8, far, zero), words);
    parts[3].template add_pairs<kHalf>(hn::InterleaveUpper(d8, far, zero), words);
  }
  HWY_INLINE void add(V8 r0, V8 r1, V8 r2, V8 r3, const int32_t* words) {
    add_two<0>(r0, r1, words);
    add_two<1>(r2, r3, words);
  }
};

#endif

/// A sum rounded, without the bits behind the point.
template <class D32>
HWY_INLINE hn::Vec<D32> finish(const Sums<D32>& sums) {
  const auto half = hn::Set(D32(), 1 << (ResampleWeights::kBits - 1));
  return hn::ShiftRight<ResampleWeights::kBits>(hn::Add(sums.total(), half));
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

/// Rows that are made together.
constexpr uint32_t kRows = 4;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
constexpr uint32_t kRowsOfVector = 4;
#elif HWY_TARGET == HWY_AVX2
constexpr uint32_t kRowsOfVector = 2;
#else
constexpr uint32_t kRowsOfVector = 1;
#endif

/// 16 bytes of each of some rows, a block of the vector for each.
template <uint32_t kCount>
HWY_INLINE auto load_rows(const uint8_t* from, size_t stride) {
  const hn::FixedTag<uint8_t, 16 * kCount> d;
  if constexpr (kCount == 1) {
    return hn::LoadU(d, from);
  } else {
    return hn::Combine(d, load_rows<kCount / 2>(from + kCount / 2 * stride, stride),
                       load_rows<kCount / 2>(from, stride));
  }
}

/// Writes `bytes` of each of the blocks to a row of its own. All 16 where kWhole says so.
template <uint32_t kCount, bool kWhole, class V>
HWY_INLINE void store_rows(V blocks, size_t bytes, uint8_t* to, size_t stride) {
  const hn::DFromV<V> d;
  if constexpr (kCount > 1) {
    const hn::Half<decltype(d)> half;
    store_rows<kCount / 2, kWhole>(hn::LowerHalf(half, blocks), bytes, to, stride);
    store_rows<kCount / 2, kWhole>(hn::UpperHalf(half, blocks), bytes, to + kCount / 2 * stride,
                                   stride);
  } else if constexpr (kWhole) {
    hn::StoreU(blocks, d, to);
  } else {
    alignas(16) uint8_t all[16];
    hn::Store(blocks, d, all);
    std::memcpy(to, all, bytes);
  }
}

struct RowPass {
  const ResampleWeights& weights;
  const int32_t* packed;
  uint32_t groups;  // of four taps, for each output pixel
  bool flip;
  size_t from_stride, to_stride;
};

/// kGroups groups of four taps for each output pixel, or as many as its window has where that is 0:
/// windows differ by one tap, and a loop whose end cannot be foreseen costs more than a group.
template <uint32_t kGroups>
void make_rows(const RowPass& pass, const uint8_t* HWY_RESTRICT from, uint8_t* HWY_RESTRICT to) {
  constexpr uint32_t kVectors = kRows / kRowsOfVector;
  const hn::FixedTag<uint8_t, 16 * kRowsOfVector> d8;
  using D32 = hn::Repartition<int32_t, decltype(d8)>;
  const auto count = static_cast<uint32_t>(pass.weights.windows.size());
  for (uint32_t out = 0; out < count; out += 4) {
    hn::Vec<D32> made[kVectors][4];
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t at = std::min(out + i, count - 1);
      const uint32_t x = pass.flip ? count - 1 - at : at;
      const ResampleWeights::Window window = pass.weights.windows[x];
      const uint8_t* source = from + size_t{window.first} * 4;
      const int32_t* words = pass.packed + size_t{x} * pass.groups * kWords;
      const uint32_t groups = kGroups != 0 ? kGroups : (window.count + kTaps - 1) / kTaps;
      Sums<D32> sums[kVectors];
      for (uint32_t group = 0; group < groups; ++group, source += 16, words += kWords) {
        for (uint32_t v = 0; v < kVectors; ++v) {
          const uint8_t* rows = source + size_t{v} * kRowsOfVector * pass.from_stride;
          sums[v].add_pixels(load_rows<kRowsOfVector>(rows, pass.from_stride), words);
        }
      }
      for (uint32_t v = 0; v < kVectors; ++v) made[v][i] = finish(sums[v]);
    }
    for (uint32_t v = 0; v < kVectors; ++v) {
      const auto pixels = narrow(d8, made[v][0], made[v][1], made[v][2], made[v][3]);
      uint8_t* rows = to + size_t{out} * 4 + size_t{v} * kRowsOfVector * pass.to_stride;
      if (out + 4 <= count) {
        store_rows<kRowsOfVector, true>(pixels, 16, rows, pass.to_stride);
      } else {
        store_rows<kRowsOfVector, false>(pixels, size_t{count - out} * 4, rows, pass.to_stride);
      }
    }
  }
}

template <uint32_t kGroups>
void make_all_rows(const RowPass& pass, const PixelView& from, PixelBuffer& to, uint32_t to_row) {
  const uint32_t height = from.size.height;
  for (uint32_t y = 0; y < height; y += kRows) {
    const uint32_t at = std::min(y, height - kRows);  // the last ones may be made twice
    make_rows<kGroups>(pass, from.row(at), to.row(to_row + at));
  }
}

/// Windows of more groups of four taps look too far for what follows.
constexpr uint32_t kMostPermuted = 3;

/// Groups of four taps that the longest window has.
uint32_t groups_of(const ResampleWeights& weights) {
  uint32_t most = 0;
  for (const ResampleWeights::Window& window : weights.windows) {
    most = std::max(most, window.count);
  }
  return (most + kTaps - 1) / kTaps;
}

#if HWY_TARGET == HWY_AVX3_DL

// Where 16 output bytes, some five pixels, look at no more than two vectors of input pixels, one
// permutation of these brings four taps of each byte to its lane.

constexpr uint32_t kOutputs = 16;
constexpr uint32_t kPixels = 16;        // of a vector
constexpr uint32_t kSetWords = 4 * 16;  // the permutation, and three pieces of the weights

template <uint32_t kReach, uint32_t kGroups>
void permute_rows(const PackedWeights& packed, const PixelView& from, uint32_t count, uint8_t* to,
                  size_t to_stride) {
  const int32_t* words = packed.words.data();
  const __m512i half = _mm512_set1_epi32(1 << (ResampleWeights::kBits - 1));
  for (uint32_t out = 0; out < count; out += kOutputs, words += size_t{kSetWords} * kGroups) {
    // In registers, for all rows.
    __m512i order[kGroups], lows[kGroups], middles[kGroups], highs[kGroups];
    for (uint32_t group = 0; group < kGroups; ++group) {
      const int32_t* const set = words + size_t{kSetWords} * group;
      order[group] = _mm512_loadu_si512(set);
      lows[group] = _mm512_loadu_si512(set + 16);
      middles[group] = _mm512_loadu_si512(set + 32);
      highs[group] = _mm512_loadu_si512(set + 48);
    }
    const auto mask =
        static_cast<__mmask16>(count - out >= kOutputs ? 0xFFFF : (1U << (count - out)) - 1);
    const uint8_t* row = from.data + size_t{packed.first[out / kOutputs]} * 4;
    uint8_t* place = to + out;
    for (uint32_t y = 0; y < from.size.height; ++y, row += from.stride, place += to_stride) {
      const __m512i near = _mm512_loadu_si512(row);
      const __m512i far = kReach == 2 ? _mm512_loadu_si512(row + 64) : near;
      __m512i low = half;
      __m512i middle = _mm512_setzero_si512();
      __m512i high = middle;
      for (uint32_t group = 0; group < kGroups; ++group) {
        const __m512i taps = kReach == 2 ? _mm512_permutex2var_epi8(near, order[group], far)
                                         : _mm512_permutexvar_epi8(order[group], near);
        low = _mm512_dpbusd_epi32(low, taps, lows[group]);
        middle = _mm512_dpbusd_epi32(middle, taps, middles[group]);
        high = _mm512_dpbusd_epi32(high, taps, highs[group]);
      }
      const __m512i upper = _mm512_add_epi32(_mm512_slli_epi32(high, 8), middle);
      const __m512i sum = _mm512_add_epi32(low, _mm512_slli_epi32(upper, 8));
      const __m512i rounded = _mm512_srai_epi32(sum, ResampleWeights::kBits);
      const __m512i cut = _mm512_max_epi32(rounded, _mm512_setzero_si512());
      _mm_mask_storeu_epi8(place, mask, _mm512_cvtusepi32_epi8(cut));
    }
  }
}

/// Returns false where 16 output bytes look too far.
bool pack_permutations(const ResampleWeights& weights, PackedWeights& packed) {
  const auto count = static_cast<uint32_t>(weights.windows.size());
  const uint32_t sets = (count * 3 + kOutputs - 1) / kOutputs;
  packed.first.resize(sets);
  packed.words.resize(size_t{kSetWords} * sets * packed.groups);
  uint32_t farthest = 0;
  int32_t* words = packed.words.data();
  for (uint32_t set = 0; set < sets; ++set) {
    // Those of the last set that lie behind the row are as good as its last pixel.
    uint32_t input[kOutputs];
    uint32_t first = ~0U;
    for (uint32_t lane = 0; lane < kOutputs; ++lane) {
      const uint32_t out = std::min((set * kOutputs + lane) / 3, count - 1);
      input[lane] = packed.flip ? count - 1 - out : out;
      first = std::min(first, weights.windows[input[lane]].first);
    }
    packed.first[set] = first;
    for (uint32_t group = 0; group < packed.groups; ++group, words += kSetWords) {
      int32_t pieces[kWords] = {};
      for (uint32_t lane = 0; lane < kOutputs; ++lane) {
        const uint32_t x = input[lane];
        if (lane == 0 || x != input[lane - 1]) {
          pack_four(weights.values.data() + size_t{x} * weights.stride + group * kTaps, pieces);
        }
        const uint32_t pixel = weights.windows[x].first - first + group * kTaps;
        farthest = std::max(farthest, pixel + kTaps);
        // Four taps lie four bytes apart each.
        const uint32_t channel = (set * kOutputs + lane) % 3;
        words[lane] = static_cast<int32_t>((pixel * 4 + channel) * 0x01010101U + 0x0C080400U);
        for (uint32_t piece = 0; piece < kWords; ++piece) {
          words[16 + piece * 16 + lane] = pieces[piece];
        }
      }
    }
  }
  packed.reach = (farthest + kPixels - 1) / kPixels;
  return packed.reach <= 2;
}

/// Whether the rows were made this way.
bool make_permuted(const PackedWeights& packed, const PixelView& from, uint32_t pixels,
                   PixelBuffer& to, uint32_t to_row) {
  static_assert(PixelView::kSlack >= 2 * kPixels * 4);
  if (packed.pixel_bytes != 3) return false;
  uint8_t* const first = to.row(to_row);
  const size_t stride = to.view().stride;
  const uint32_t count = pixels * 3;
  using Permute = decltype(&permute_rows<1, 1>);
  static constexpr Permute kPermute[2][kMostPermuted] = {
      {permute_rows<1, 1>, permute_rows<1, 2>, permute_rows<1, 3>},
      {permute_rows<2, 1>, permute_rows<2, 2>, permute_rows<2, 3>}};
  kPermute[packed.reach - 1][packed.groups - 1](packed, from, count, first, stride);
  return true;
}

#else

bool pack_permutations(const ResampleWeights& /*weights*/, PackedWeights& /*packed*/) {
  return false;
}

bool make_permuted(const PackedWeights& /*packed*/, const PixelView& /*from*/, uint32_t /*pixels*/,
                   PixelBuffer& /*to*/, uint32_t /*to_row*/) {
  return false;
}

#endif

void pack_all(const ResampleWeights& weights, PackedWeights& packed) {
  packed.groups = groups_of(weights);
  packed.pixel_bytes = 3;
  if (packed.groups <= kMostPermuted && pack_permutations(weights, packed)) return;
  packed.pixel_bytes = 4;
  const uint32_t groups = packed.groups;
  const size_t count = weights.windows.size();
  packed.words.resize(count * groups * kWords);
  for (size_t x = 0; x < count; ++x) {
    for (size_t group = 0; group < groups; ++group) {
      pack_four(weights.values.data() + x * weights.stride + group * kTaps,
                packed.words.data() + (x * groups + group) * kWords);
    }
  }
}

void rows(const PixelView& from, const ResampleWeights& weights, const PackedWeights& packed,
          PixelBuffer& to, uint32_t to_row) {
  const auto count = static_cast<uint32_t>(weights.windows.size());
  if (make_permuted(packed, from, count, to, to_row)) return;
  if (from.size.height < kRows) {
    return resample_rows_plainly(from, weights, packed.flip, to, to_row);
  }
  const uint32_t groups = packed.groups;
  const RowPass pass{weights,     packed.words.data(), groups,
                     packed.flip, from.stride,         to.view().stride};
  // Groups behind the last tap of a window read what lies behind the row.
  static_assert(PixelView::kSlack >= 2 * kTaps * 4);
  if (groups == 1) return make_all_rows<1>(pass, from, to, to_row);
  if (groups == 2) return make_all_rows<2>(pass, from, to, to_row);
  make_all_rows<0>(pass, from, to, to_row);
}

void column(const PixelView& from, size_t bytes, const ResampleWeights& weights, uint32_t row,
            uint8_t* HWY_RESTRICT to) {
  const hn::ScalableTag<uint8_t> d8;
  const ResampleWeights::Window window = weights.windows[row];
  const uint32_t groups = (window.count + kTaps - 1) / kTaps;
  int32_t words[kMostTaps / kTaps * kWords];
  for (uint32_t group = 0; group < groups; ++group) {
    pack_four(weights.values.data() + size_t{row} * weights.stride + group * kTaps,
              words + group * kWords);
  }
  const uint8_t* taps[kMostTaps];
  for (uint32_t tap = 0; tap < groups * kTaps; ++tap) {
    // Rows behind the window have no weight, and may not be there.
    taps[tap] = from.row(window.first + std::min(tap, window.count - 1));
  }
  for (size_t at = 0; at < bytes; at += hn::Lanes(d8)) {
    ColumnSums<decltype(d8)> sums;
    for (uint32_t group = 0; group < groups; ++group) {
      const uint8_t* const* four = taps + group * kTaps;
      sums.add(hn::LoadU(d8, four[0] + at), hn::LoadU(d8, four[1] + at),
               hn::LoadU(d8, four[2] + at), hn::LoadU(d8, four[3] + at), words + group * kWords);
    }
    hn::StoreU(narrow(d8, finish(sums.parts[0]), finish(sums.parts[1]), finish(sums.parts[2]),
                      finish(sums.parts[3])),
               d8, to + at);
  }
}

void pack(const uint8_t* HWY_RESTRICT from, uint32_t width, bool flip, uint8_t* HWY_RESTRICT out) {
  const hn::FixedTag<uint8_t, 16> d8;
  alignas(16) static constexpr uint8_t kForward[16] = {0,  1,  2,  4,  5,    6,    8,    9,
                                                       10, 12, 13, 14, 0x80, 0x80, 0x80, 0x80};
  alignas(16) static constexpr uint8_t kBackward[16] = {12, 13, 14, 8, 9,    10,   4,    5,
                                                        6,  0,  1,  2, 0x80, 0x80, 0x80, 0x80};
  const auto order = hn::Load(d8, flip ? kBackward : kForward);
  // Four pixels at a time, in 16 bytes of which the next four overwrite the last.
  uint32_t x = 0;
  for (; x + 6 <= width; x += 4) {
    const uint8_t* four = from + 4 * size_t{flip ? width - 4 - x : x};
    hn::StoreU(hn::TableLookupBytesOr0(hn::LoadU(d8, four), order), d8, out + 3 * size_t{x});
  }
  pack_row_plainly(flip ? from : from + 4 * size_t{x}, width - x, flip, out + 3 * size_t{x});
}

#endif

}  // namespace stoker::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {
namespace {

HWY_EXPORT(pack_all);
HWY_EXPORT(rows);
HWY_EXPORT(column);
HWY_EXPORT(pack);

uint8_t clip(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> ResampleWeights::kBits, 0, 255));
}

}  // namespace

void pack_weights(const ResampleWeights& weights, bool flip, PackedWeights& packed) {
  packed.flip = flip;
  packed.pixel_bytes = 4;
  if (weights.stride <= kMostTaps) HWY_DYNAMIC_DISPATCH(pack_all)(weights, packed);
}

void resample_rows(const PixelView& from, const ResampleWeights& weights,
                   const PackedWeights& packed, PixelBuffer& to, uint32_t to_row) {
  if (weights.stride > kMostTaps) {
    return resample_rows_plainly(from, weights, packed.flip, to, to_row);
  }
  HWY_DYNAMIC_DISPATCH(rows)(from, weights, packed, to, to_row);
}

void resample_column(const PixelView& from, size_t bytes, const ResampleWeights& weights,
                     uint32_t row, uint8_t* to) {
  if (weights.stride > kMostTaps) return resample_column_plainly(from, bytes, weights, row, to);
  HWY_DYNAMIC_DISPATCH(column)(from, bytes, weights, row, to);
}

void resample_rows_plainly(const PixelView& from, const ResampleWeights& weights, bool flip,
                           PixelBuffer& to, uint32_t to_row) {
  const size_t count = weights.windows.size();
  for (uint32_t y = 0; y < from.size.height; ++y) {
    for (size_t x = 0; x < count; ++x) {
      const ResampleWeights::Window window = weights.windows[x];
      const uint8_t* source = from.row(y) + size_t{window.first} * 4;
      uint8_t* out = to.row(to_row + y) + (flip ? count - 1 - x : x) * 4;
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

void resample_column_plainly(const PixelView& from, size_t bytes, const ResampleWeights& weights,
                             uint32_t row, uint8_t* to) {
  const ResampleWeights::Window window = weights.windows[row];
  const int32_t* values = weights.values.data() + size_t{row} * weights.stride;
  for (size_t at = 0; at < bytes; ++at) {
    int32_t sum = 1 << (ResampleWeights::kBits - 1);
    for (uint32_t tap = 0; tap < window.count; ++tap) {
      sum += from.row(window.first + tap)[at] * values[tap];
    }
    to[at] = clip(sum);
  }
}

void pack_row(const uint8_t* from, uint32_t width, bool flip, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(pack)(from, width, flip, out);
}

void pack_row_plainly(const uint8_t* from, uint32_t width, bool flip, uint8_t* out) {
  for (uint32_t x = 0; x < width; ++x) {
    std::memcpy(out + 3 * size_t{x}, from + 4 * size_t{flip ? width - 1 - x : x}, 3);
  }
}

}  // namespace stoker
#endif
