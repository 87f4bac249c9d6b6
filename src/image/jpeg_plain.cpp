// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "image/jpeg_kernels.h"

namespace stoker {
namespace {

int16_t wrapped(int32_t value) { return static_cast<int16_t>(static_cast<uint32_t>(value)); }
int16_t saturated(int32_t value) {
  return static_cast<int16_t>(std::clamp<int32_t>(value, INT16_MIN, INT16_MAX));
}
uint8_t cut(int32_t value) { return static_cast<uint8_t>(std::clamp(value, 0, 255)); }

/// One pass over eight numbers that lie `step` apart.
void pass(int16_t* at, int step, int shift) {
  const auto in = [&](int i) { return int32_t{at[i * step]}; };
  // Sums of 16 bits run over where they do in vectors, those of 32 bits likewise.
  const auto times = [](int32_t a, int32_t b) { return static_cast<uint32_t>(a) * b; };
  const auto rounding = uint32_t{1} << (shift - 1);
  const uint32_t e0 = times(wrapped(in(0) + in(4)), 8192) + rounding;
  const uint32_t e1 = times(wrapped(in(0) - in(4)), 8192) + rounding;
  const uint32_t t2 = times(in(2), 4433) + times(in(6), 4433 - 15137);
  const uint32_t t3 = times(in(2), 4433 + 6270) + times(in(6), 4433);
  const int32_t z3 = wrapped(in(7) + in(3));
  const int32_t z4 = wrapped(in(5) + in(1));
  const uint32_t a = times(z3, 9633 - 16069) + times(z4, 9633);
  const uint32_t b = times(z3, 9633) + times(z4, 9633 - 3196);
  const uint32_t sums[4] = {e0 + t3, e1 + t2, e1 - t2, e0 - t3};
  const uint32_t odds[4] = {b + times(in(7), -7373) + times(in(1), 12299 - 7373),
                            a + times(in(5), -20995) + times(in(3), 25172 - 20995),
                            b + times(in(5), 16819 - 20995) + times(in(3), -20995),
                            a + times(in(7), 2446 - 7373) + times(in(1), -7373)};
  for (int i = 0; i < 4; ++i) {
    at[i * step] = saturated(static_cast<int32_t>(sums[i] + odds[i]) >> shift);
    at[(7 - i) * step] = saturated(static_cast<int32_t>(sums[i] - odds[i]) >> shift);
  }
}

}  // namespace

bool inverse_dct_plainly(const int16_t* coefficients, const int16_t* quantization, uint32_t blocks,
                         uint8_t* to, size_t stride) {
  bool usual = true;
  for (uint32_t block = 0; block < blocks; ++block, coefficients += 64, to += 8) {
    int16_t work[64];
    for (int i = 0; i < 64; ++i) work[i] = wrapped(coefficients[i] * quantization[i]);
    for (int i = 0; i < 8; ++i) usual = usual && work[i] >= -8192 && work[i] < 8192;
    for (int column = 0; column < 8; ++column) pass(work + column, 8, 11);
    for (int row = 0; row < 8; ++row) pass(work + row * 8, 1, 18);
    for (size_t i = 0; i < 64; ++i) to[i / 8 * stride + i % 8] = cut(work[i] + 128);
  }
  return usual;
}

void double_width_plainly(const uint8_t* from, uint32_t count, uint8_t* to) {
  for (uint32_t x = 0; x < count; ++x, ++from, to += 2) {
    to[0] = static_cast<uint8_t>((3 * from[0] + from[-1] + 1) >> 2);
    to[1] = static_cast<uint8_t>((3 * from[0] + from[1] + 2) >> 2);
  }
}

void double_both_plainly(const uint8_t* from, const uint8_t* other, uint32_t count, uint8_t* to) {
  const auto sum = [](const uint8_t* a, const uint8_t* b) { return 3 * *a + *b; };
  for (uint32_t x = 0; x < count; ++x, ++from, ++other, to += 2) {
    const int here = 3 * sum(from, other);
    to[0] = static_cast<uint8_t>((here + sum(from - 1, other - 1) + 8) >> 4);
    to[1] = static_cast<uint8_t>((here + sum(from + 1, other + 1) + 7) >> 4);
  }
}

void double_height_plainly(const uint8_t* from, const uint8_t* other, uint32_t count, uint8_t bias,
                           uint8_t* to) {
  for (uint32_t x = 0; x < count; ++x) {
    to[x] = static_cast<uint8_t>((3 * from[x] + other[x] + bias) >> 2);
  }
}

void colours_from_ycc_plainly(const uint8_t* y, const uint8_t* cb, const uint8_t* cr,
                              uint32_t count, uint8_t* to) {
  // The factors of jdcolor.c with 16 bits behind the point.
  constexpr int32_t kHalf = 32768;
  for (uint32_t x = 0; x < count; ++x, to += 4) {
    const int32_t b = cb[x] - 128;
    const int32_t r = cr[x] - 128;
    to[0] = cut(y[x] + ((91881 * r + kHalf) >> 16));
    to[1] = cut(y[x] + ((-22554 * b - 46802 * r + kHalf) >> 16));
    to[2] = cut(y[x] + ((116130 * b + kHalf) >> 16));
    to[3] = 0;
  }
}

void colours_from_rgb_plainly(const uint8_t* red, const uint8_t* green, const uint8_t* blue,
                              uint32_t count, uint8_t* to) {
  for (uint32_t x = 0; x < count; ++x, to += 4) {
    to[0] = red[x];
    to[1] = green[x];
    to[2] = blue[x];
    to[3] = 0;
  }
}

}  // namespace stoker
