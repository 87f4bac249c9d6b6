// SPDX-License-Identifier: Apache-2.0
#include "image/jpeg_kernels.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "image/jpeg_kernels.cpp"
#include <hwy/foreach_target.h>
// Behind it: this file is compiled once for each kind of vectors.
#include <hwy/highway.h>

// What Highway 1.0 does not know of this target is in all CPUs that have the rest of it.
#if HWY_TARGET == HWY_AVX3_DL
HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512vnni")
#else
HWY_BEFORE_NAMESPACE();
#endif
namespace stoker::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Blocks that fill a vector: see blocks_per_group().
constexpr uint32_t kGroup = HWY_LANES(int16_t) >= 8 ? HWY_LANES(int16_t) / 8 : 1;

#if HWY_TARGET == HWY_SCALAR

bool inverse(const int16_t* coefficients, const int16_t* quantization, uint32_t blocks, uint8_t* to,
             size_t stride) {
  return inverse_dct_plainly(coefficients, quantization, blocks, to, stride);
}

void widen(const uint8_t* from, uint32_t count, uint8_t* to) {
  double_width_plainly(from, count, to);
}

void widen_and_heighten(const uint8_t* from, const uint8_t* other, uint32_t count, uint8_t* to) {
  double_both_plainly(from, other, count, to);
}

void heighten(const uint8_t* from, const uint8_t* other, uint32_t count, uint8_t bias,
              uint8_t* to) {
  double_height_plainly(from, other, count, bias, to);
}

void ycc(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, uint32_t count, uint8_t* to) {
  colours_from_ycc_plainly(y, cb, cr, count, to);
}

void rgb(const uint8_t* red, const uint8_t* green, const uint8_t* blue, uint32_t count,
         uint8_t* to) {
  colours_from_rgb_plainly(red, green, blue, count, to);
}

#else

// --- Inverse DCT
// -----------------------------------------------------------------------------------

using D16 = hn::FixedTag<int16_t, 8 * kGroup>;
using D32 = hn::Repartition<int32_t, D16>;
using V16 = hn::Vec<D16>;
using V32 = hn::Vec<D32>;

/// In each lane a * first + b * second + sum, of pairs (a, b) of 16 bits.
HWY_INLINE V32 multiply_pairs(V16 pairs, int16_t first, int16_t second, V32 sum) {
  const D32 d32;
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128
  const auto weights =
      hn::Set(d32, static_cast<int32_t>(uint32_t{static_cast<uint16_t>(first)} |
                                        uint32_t{static_cast<uint16_t>(second)} << 16));
#if HWY_TARGET == HWY_AVX3_DL
  return V32{_mm512_dpwssd_epi32(sum.raw, pairs.raw, weights.raw)};
#else
  V32 unused = hn::Zero(d32);  // by this architecture, which adds neighbours
  return hn::ReorderWidenMulAccumulate(d32, pairs, hn::BitCast(D16(), weights), sum, unused);
#endif
#else
  const auto wide = hn::BitCast(d32, pairs);
  const auto even = hn::Mul(hn::ShiftRight<16>(hn::ShiftLeft<16>(wide)), hn::Set(d32, first));
  const auto odd = hn::Mul(hn::ShiftRight<16>(wide), hn::Set(d32, second));
  return hn::Add(sum, hn::Add(even, odd));
#endif
}

/// One half of each block of 16 bytes: pairs of what `a` and `b` have there.
template <bool kUpper>
HWY_INLINE V16 pairs_of(V16 a, V16 b) {
  const D16 d16;
  if constexpr (kUpper) {
    return hn::InterleaveUpper(d16, a, b);
  } else {
    return hn::InterleaveLower(d16, a, b);
  }
}

// The factors of jidctint.c, the "slow" integer DCT, with 13 bits behind the point: kF0298 is
// 0.298.
constexpr int16_t kF0298 = 2446, kF0390 = 3196, kF0541 = 4433, kF0765 = 6270, kF0899 = 7373,
                  kF1175 = 9633, kF1501 = 12299, kF1847 = 15137, kF1961 = 16069, kF2053 = 16819,
                  kF2562 = 20995, kF3072 = 25172, kOne = 8192;

/// One pass over half of the columns; kShift bits are rounded off.
template <bool kUpper, int kShift>
HWY_INLINE void half_pass(const V16* in, V16 sum04, V16 difference04, V16 z3, V16 z4, V32* out) {
  const D32 d32;
  const auto zero = hn::Zero(d32);
  const auto rounding = hn::Set(d32, 1 << (kShift - 1));
  const auto even = pairs_of<kUpper>(sum04, difference04);
  const auto e0 = multiply_pairs(even, kOne, 0, rounding);
  const auto e1 = multiply_pairs(even, 0, kOne, rounding);
  const auto p26 = pairs_of<kUpper>(in[2], in[6]);
  const auto t10 = multiply_pairs(p26, kF0541 + kF0765, kF0541, e0);
  const auto t13 = multiply_pairs(p26, -(kF0541 + kF0765), -kF0541, e0);
  const auto t11 = multiply_pairs(p26, kF0541, kF0541 - kF1847, e1);
  const auto t12 = multiply_pairs(p26, -kF0541, kF1847 - kF0541, e1);
  const auto z34 = pairs_of<kUpper>(z3, z4);
  const auto a = multiply_pairs(z34, kF1175 - kF1961, kF1175, zero);
  const auto b = multiply_pairs(z34, kF1175, kF1175 - kF0390, zero);
  const auto p71 = pairs_of<kUpper>(in[7], in[1]);
  const auto p53 = pairs_of<kUpper>(in[5], in[3]);
  const auto t0 = multiply_pairs(p71, kF0298 - kF0899, -kF0899, a);
  const auto t3 = multiply_pairs(p71, -kF0899, kF1501 - kF0899, b);
  const auto t1 = multiply_pairs(p53, kF2053 - kF2562, -kF2562, b);
  const auto t2 = multiply_pairs(p53, -kF2562, kF3072 - kF2562, a);
  const V32 sums[4] = {t10, t11, t12, t13};
  const V32 odds[4] = {t3, t2, t1, t0};
  for (int i = 0; i < 4; ++i) {
    out[i] = hn::ShiftRight<kShift>(hn::Add(sums[i], odds[i]));
    out[7 - i] = hn::ShiftRight<kShift>(hn::Sub(sums[i], odds[i]));
  }
}

/// Sums of 16 bits run over exactly where they do in libjpeg-turbo's vectors.
template <int kShift>
HWY_INLINE void pass(V16* rows) {
  const auto sum04 = hn::Add(rows[0], rows[4]);
  const auto difference04 = hn::Sub(rows[0], rows[4]);
  const auto z3 = hn::Add(rows[7], rows[3]);
  const auto z4 = hn::Add(rows[5], rows[1]);
  V32 lower[8];
  V32 upper[8];
  half_pass<false, kShift>(rows, sum04, difference04, z3, z4, lower);
  half_pass<true, kShift>(rows, sum04, difference04, z3, z4, upper);
  for (int i = 0; i < 8; ++i) rows[i] = hn::ReorderDemote2To(D16(), lower[i], upper[i]);
}

/// Rows to columns, of each block alone.
HWY_INLINE void transpose(V16* rows) {
  const D16 d16;
  const D32 d32;
  const hn::Repartition<int64_t, D16> d64;
  V16 a[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = hn::InterleaveLower(d16, rows[i], rows[i + 1]);
    a[i + 1] = hn::InterleaveUpper(d16, rows[i], rows[i + 1]);
  }
  V32 b[8];
  const auto pairs = [&](int from, int to) {
    const auto x = hn::BitCast(d32, a[from]);
    const auto y = hn::BitCast(d32, a[from + 2]);
    b[to] = hn::InterleaveLower(d32, x, y);
    b[to + 1] = hn::InterleaveUpper(d32, x, y);
  };
  pairs(0, 0);
  pairs(1, 2);
  pairs(4, 4);
  pairs(5, 6);
  for (int i = 0; i < 4; ++i) {
    const auto x = hn::BitCast(d64, b[i]);
    const auto y = hn::BitCast(d64, b[i + 4]);
    rows[2 * i] = hn::BitCast(d16, hn::InterleaveLower(d64, x, y));
    rows[2 * i + 1] = hn::BitCast(d16, hn::InterleaveUpper(d64, x, y));
  }
}

#if HWY_TARGET == HWY_AVX3_DL

/// Which bytes go where when columns of four blocks become rows of them.
struct ColumnsToRows {
  // Of (columns 0 and 1, columns 2 and 3) of four blocks: four bytes of a row beside each other.
  alignas(64) uint8_t upper[64], lower[64];
  // Of those and the same of columns 4 to 7: two rows of all blocks.
  alignas(64) uint32_t first[16], second[16];

  ColumnsToRows() {
    for (uint32_t block = 0; block < 4; ++block) {
      for (uint32_t row = 0; row < 4; ++row) {
        for (uint32_t column = 0; column < 4; ++column) {
          const uint32_t from = column / 2 * 64 + block * 16 + column % 2 * 8 + row;
          upper[block * 16 + row * 4 + column] = static_cast<uint8_t>(from);
          lower[block * 16 + row * 4 + column] = static_cast<uint8_t>(from + 4);
        }
      }
      for (uint32_t row = 0; row < 2; ++row) {
        first[row * 8 + block * 2] = block * 4 + row;
        second[row * 8 + block * 2] = block * 4 + 2 + row;
      }
    }
    for (uint32_t i = 0; i < 16; i += 2) {
      first[i + 1] = 16 + first[i];
      second[i + 1] = 16 + second[i];
    }
  }
};

HWY_INLINE void store_samples(V16* columns, uint8_t* to, size_t stride) {
  static const ColumnsToRows order;
  const auto bytes = [&](int i) {
    return _mm512_xor_si512(_mm512_packs_epi16(columns[i].raw, columns[i + 1].raw),
                            _mm512_set1_epi8(static_cast<char>(0x80)));
  };
  const __m512i c01 = bytes(0), c23 = bytes(2), c45 = bytes(4), c67 = bytes(6);
  const auto four_rows = [&](const uint8_t* which, uint8_t* at) {
    const __m512i index = _mm512_load_si512(which);
    const __m512i left = _mm512_permutex2var_epi8(c01, index, c23);
    const __m512i right = _mm512_permutex2var_epi8(c45, index, c67);
    const auto two_rows = [&](const uint32_t* rows, uint8_t* row) {
      const __m512i both = _mm512_permutex2var_epi32(left, _mm512_load_si512(rows), right);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(row), _mm512_castsi512_si256(both));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(row + stride),
                          _mm512_extracti64x4_epi64(both, 1));
    };
    two_rows(order.first, at);
    two_rows(order.second, at + 2 * stride);
  };
  four_rows(order.upper, to);
  four_rows(order.lower, to + 4 * stride);
}

#else

HWY_INLINE void store_samples(V16* columns, uint8_t* to, size_t stride) {
  const hn::FixedTag<int8_t, 8 * kGroup> d8;
  const hn::RebindToUnsigned<decltype(d8)> du8;
  transpose(columns);
  for (int row = 0; row < 8; ++row) {
    const auto bytes = hn::BitCast(du8, hn::DemoteTo(d8, columns[row]));
    hn::StoreU(hn::Xor(bytes, hn::Set(du8, 0x80)), du8, to + static_cast<size_t>(row) * stride);
  }
}

#endif

bool inverse(const int16_t* coefficients, const int16_t* quantization, uint32_t blocks, uint8_t* to,
             size_t stride) {
  const D16 d16;
  auto first_rows = hn::Zero(d16);  // each plus 8192: less than 16384 where it is usual
  for (uint32_t block = 0; block < blocks; block += kGroup) {
    V16 rows[8];
    for (int row = 0; row < 8; ++row) {
      const auto factors = hn::LoadDup128(d16, quantization + 8 * row);
      rows[row] = hn::Mul(hn::LoadU(d16, coefficients + 8 * kGroup * row), factors);
    }
    first_rows = hn::Or(first_rows, hn::Add(rows[0], hn::Set(d16, 8192)));
    pass<11>(rows);
    transpose(rows);
    pass<18>(rows);
    store_samples(rows, to, stride);
    coefficients += size_t{64} * kGroup;
    to += size_t{8} * kGroup;
  }
  const auto unusual = hn::And(first_rows, hn::Set(d16, static_cast<int16_t>(0xC000)));
  return hn::AllTrue(d16, hn::Eq(unusual, hn::Zero(d16)));
}

// --- Upsampling and colours
// ------------------------------------------------------------------------

/// Bytes as numbers of 16 bits.
using D = hn::ScalableTag<int16_t>;
using DBytes = hn::Rebind<uint8_t, D>;
using V = hn::Vec<D>;

HWY_INLINE V numbers(const uint8_t* from) { return hn::PromoteTo(D(), hn::LoadU(DBytes(), from)); }

/// Three parts of the nearer, one of the other.
HWY_INLINE V three_to_one(V near, V other) {
  return hn::Add(hn::Add(near, hn::Add(near, near)), other);
}

/// Writes the bytes of `even` and `odd` in turns.
HWY_INLINE void store_in_turns(V even, V odd, uint8_t* to) {
  const hn::Repartition<uint8_t, D> d8;
  hn::StoreU(hn::BitCast(d8, hn::Or(even, hn::ShiftLeft<8>(odd))), d8, to);
}

void widen(const uint8_t* from, uint32_t count, uint8_t* to) {
  const D d;
  for (uint32_t x = 0; x < count; x += hn::Lanes(d)) {
    const V here = numbers(from + x);
    const V left = hn::Add(three_to_one(here, numbers(from + x - 1)), hn::Set(d, 1));
    const V right = hn::Add(three_to_one(here, numbers(from + x + 1)), hn::Set(d, 2));
    store_in_turns(hn::ShiftRight<2>(left), hn::ShiftRight<2>(right), to + 2 * size_t{x});
  }
}

void widen_and_heighten(const uint8_t* from, const uint8_t* other, uint32_t count, uint8_t* to) {
  const D d;
  for (uint32_t x = 0; x < count; x += hn::Lanes(d)) {
    const auto sum = [&](const uint8_t* a, const uint8_t* b) {
      return three_to_one(numbers(a + x), numbers(b + x));
    };
    const V here = sum(from, other);
    const V left = hn::Add(three_to_one(here, sum(from - 1, other - 1)), hn::Set(d, 8));
    const V right = hn::Add(three_to_one(here, sum(from + 1, other + 1)), hn::Set(d, 7));
    store_in_turns(hn::ShiftRight<4>(left), hn::ShiftRight<4>(right), to + 2 * size_t{x});
  }
}

void heighten(const uint8_t* from, const uint8_t* other, uint32_t count, uint8_t bias,
              uint8_t* to) {
  const D d;
  for (uint32_t x = 0; x < count; x += hn::Lanes(d)) {
    const V sum = hn::Add(three_to_one(numbers(from + x), numbers(other + x)), hn::Set(d, bias));
    hn::StoreU(hn::DemoteTo(DBytes(), hn::ShiftRight<2>(sum)), DBytes(), to + x);
  }
}

#if HWY_TARGET == HWY_AVX3_DL

// 32 pixels at a time. In each block of 16 bytes lie four of the first 16 and four of the last 16:
// so that interleaving, which does not leave the block, puts the pixels into their order.

struct SpreadOrder {
  alignas(64) uint8_t at[64];

  SpreadOrder() {
    for (uint32_t lane = 0; lane < 32; ++lane) {
      at[2 * lane] = static_cast<uint8_t>(lane / 8 * 4 + lane % 4 + lane % 8 / 4 * 16);
      at[2 * lane + 1] = 0;
    }
  }
};

HWY_INLINE V spread_numbers(const uint8_t* from) {
  static const SpreadOrder order;
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return V{_mm512_maskz_permutexvar_epi8(0x5555555555555555, _mm512_load_si512(order.at),
                                         _mm512_castsi256_si512(bytes))};
}

HWY_INLINE void store_pixels(V red, V green, V blue, uint8_t* to) {
  const D d;
  const hn::Repartition<uint8_t, D> d8;
  const auto cut = [&](V value) { return hn::Min(hn::Max(value, hn::Zero(d)), hn::Set(d, 255)); };
  const V red_green = hn::Or(cut(red), hn::ShiftLeft<8>(cut(green)));
  const V only_blue = cut(blue);
  hn::StoreU(hn::BitCast(d8, hn::InterleaveLower(d, red_green, only_blue)), d8, to);
  hn::StoreU(hn::BitCast(d8, hn::InterleaveUpper(d, red_green, only_blue)), d8, to + 64);
}

#else

HWY_INLINE V spread_numbers(const uint8_t* from) { return numbers(from); }

HWY_INLINE void store_pixels(V red, V green, V blue, uint8_t* to) {
  const DBytes d;
  hn::StoreInterleaved4(hn::DemoteTo(d, red), hn::DemoteTo(d, green), hn::DemoteTo(d, blue),
                        hn::Zero(d), d, to);
}

#endif

void ycc(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, uint32_t count, uint8_t* to) {
  const D d;
  const hn::Repartition<int32_t, D> d32;
  const auto middle = hn::Set(d, 128);
  const auto one = hn::Set(d, 1);
  for (uint32_t x = 0; x < count; x += hn::Lanes(d)) {
    const V light = spread_numbers(y + x);
    const V b = hn::Sub(spread_numbers(cb + x), middle);
    const V r = hn::Sub(spread_numbers(cr + x), middle);
    // 1.40200 = 1 + 26345 / 65536, 1.77200 = 2 - 14942 / 65536, both rounded.
    const auto half = [&](V twice, int16_t factor) {
      return hn::ShiftRight<1>(hn::Add(hn::MulHigh(twice, hn::Set(d, factor)), one));
    };
    const V red = hn::Add(light, hn::Add(r, half(hn::Add(r, r), 26345)));
    const V blue = hn::Add(light, hn::Add(hn::Add(b, b), half(hn::Add(b, b), -14942)));
    // -0.34414 = -22554 / 65536, -0.71414 = 18734 / 65536 - 1.
    const auto green_part = [&](auto pairs) {
      const auto rounding = hn::Set(d32, 32768);
#if HWY_TARGET == HWY_AVX3_DL
      const auto weights = hn::Set(d32, static_cast<int32_t>(18734U << 16 | (65536U - 22554U)));
      return hn::ShiftRight<16>(
          hn::Vec<decltype(d32)>{_mm512_dpwssd_epi32(rounding.raw, pairs.raw, weights.raw)});
#else
      const auto wide = hn::BitCast(d32, pairs);
      const auto even = hn::Mul(hn::ShiftRight<16>(hn::ShiftLeft<16>(wide)), hn::Set(d32, -22554));
      const auto odd = hn::Mul(hn::ShiftRight<16>(wide), hn::Set(d32, 18734));
      return hn::ShiftRight<16>(hn::Add(rounding, hn::Add(even, odd)));
#endif
    };
    const V mixed = hn::ReorderDemote2To(d, green_part(hn::InterleaveLower(d, b, r)),
                                         green_part(hn::InterleaveUpper(d, b, r)));
    const V green = hn::Add(light, hn::Sub(mixed, r));
    store_pixels(red, green, blue, to + 4 * size_t{x});
  }
}

void rgb(const uint8_t* red, const uint8_t* green, const uint8_t* blue, uint32_t count,
         uint8_t* to) {
  const D d;
  for (uint32_t x = 0; x < count; x += hn::Lanes(d)) {
    store_pixels(spread_numbers(red + x), spread_numbers(green + x), spread_numbers(blue + x),
                 to + 4 * size_t{x});
  }
}

#endif

}  // namespace stoker::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {
namespace {

HWY_EXPORT(inverse);
HWY_EXPORT(widen);
HWY_EXPORT(widen_and_heighten);
HWY_EXPORT(heighten);
HWY_EXPORT(ycc);
HWY_EXPORT(rgb);

}  // namespace

bool inverse_dct(const int16_t* coefficients, const int16_t* quantization, uint32_t blocks,
                 uint8_t* to, size_t stride) {
  return HWY_DYNAMIC_DISPATCH(inverse)(coefficients, quantization, blocks, to, stride);
}

void double_width(const uint8_t* from, uint32_t count, uint8_t* to) {
  HWY_DYNAMIC_DISPATCH(widen)(from, count, to);
}

void double_both(const uint8_t* from, const uint8_t* other, uint32_t count, uint8_t* to) {
  HWY_DYNAMIC_DISPATCH(widen_and_heighten)(from, other, count, to);
}

void double_height(const uint8_t* from, const uint8_t* other, uint32_t count, uint8_t bias,
                   uint8_t* to) {
  HWY_DYNAMIC_DISPATCH(heighten)(from, other, count, bias, to);
}

void colours_from_ycc(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, uint32_t count,
                      uint8_t* to) {
  HWY_DYNAMIC_DISPATCH(ycc)(y, cb, cr, count, to);
}

void colours_from_rgb(const uint8_t* red, const uint8_t* green, const uint8_t* blue, uint32_t count,
                      uint8_t* to) {
  HWY_DYNAMIC_DISPATCH(rgb)(red, green, blue, count, to);
}

}  // namespace stoker
#endif
