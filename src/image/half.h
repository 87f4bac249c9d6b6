// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace stoker {

// Floats of 16 bits. To fewer bits: to the nearest, ties to even, NaN stays NaN. Without branches,
// so that loops over them become vectors.

inline float from_bfloat16(uint16_t half) { return std::bit_cast<float>(uint32_t{half} << 16); }

inline uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = bits + 0x7FFF + ((bits >> 16) & 1);
  const bool is_nan = (bits & 0x7FFFFFFF) > 0x7F800000;
  return static_cast<uint16_t>((is_nan ? bits | 0x400000 : rounded) >> 16);
}

inline float from_float16(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000U} << 16;
  const uint32_t magnitude = uint32_t{half & 0x7FFFU} << 13;
  // Exponents differ by 112; multiplying makes subnormal numbers right as well.
  const auto finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
  const bool is_finite = (half & 0x7C00) != 0x7C00;
  return std::bit_cast<float>(sign | (is_finite ? finite : magnitude | 0x7F800000));
}

inline uint16_t to_float16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  constexpr uint32_t kExponents = 112U << 23;
  const uint32_t normal = (magnitude - kExponents + 0xFFF + ((magnitude >> 13) & 1)) >> 13;
  // The last bit of 0.5F is that of subnormal numbers: adding it rounds them.
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) -
                             std::bit_cast<uint32_t>(0.5F);
  const uint32_t beyond = magnitude > 0x7F800000 ? 0x7E00 : 0x7C00;  // NaN, infinity
  const uint32_t finite = magnitude < 0x38800000 ? subnormal : normal;
  return static_cast<uint16_t>(sign | (magnitude >= 0x47800000 ? beyond : finite));
}

}  // namespace stoker
