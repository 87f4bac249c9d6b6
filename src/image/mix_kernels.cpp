// SPDX-License-Identifier: Apache-2.0
#include "image/mix_kernels.h"

#include "image/half.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "image/mix_kernels.cpp"
#include <hwy/foreach_target.h>
// Behind it: this file is compiled once for each kind of vectors.
#include <hwy/highway.h>

// Plain loops, which compilers turn into vectors. Nothing may be contracted to a fused
// multiply-add: the bits would not be torch's. CMakeLists.txt sees to both.

HWY_BEFORE_NAMESPACE();
namespace stoker::HWY_NAMESPACE {

void mix_float32(float* HWY_RESTRICT own, const float* HWY_RESTRICT before, size_t count,
                 float share, float rest) {
  for (size_t i = 0; i < count; ++i) own[i] = before[i] * rest + own[i] * share;
}

void mix_float16(uint16_t* HWY_RESTRICT own, const uint16_t* HWY_RESTRICT before, size_t count,
                 float share, float rest) {
  for (size_t i = 0; i < count; ++i) {
    const uint16_t mine = to_float16(from_float16(own[i]) * share);
    const uint16_t other = to_float16(from_float16(before[i]) * rest);
    own[i] = to_float16(from_float16(other) + from_float16(mine));
  }
}

void mix_bfloat16(uint16_t* HWY_RESTRICT own, const uint16_t* HWY_RESTRICT before, size_t count,
                  float share, float rest) {
  for (size_t i = 0; i < count; ++i) {
    const uint16_t mine = to_bfloat16(from_bfloat16(own[i]) * share);
    const uint16_t other = to_bfloat16(from_bfloat16(before[i]) * rest);
    own[i] = to_bfloat16(from_bfloat16(other) + from_bfloat16(mine));
  }
}

}  // namespace stoker::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {
namespace {

HWY_EXPORT(mix_float32);
HWY_EXPORT(mix_float16);
HWY_EXPORT(mix_bfloat16);

}  // namespace

void mix_numbers(PixelType type, std::byte* own, const std::byte* before, size_t count, float share,
                 float rest) {
  if (type == PixelType::float32) {
    HWY_DYNAMIC_DISPATCH(mix_float32)
    (reinterpret_cast<float*>(own), reinterpret_cast<const float*>(before), count, share, rest);
    return;
  }
  auto* const halves = reinterpret_cast<uint16_t*>(own);
  const auto* const others = reinterpret_cast<const uint16_t*>(before);
  if (type == PixelType::float16) {
    HWY_DYNAMIC_DISPATCH(mix_float16)(halves, others, count, share, rest);
  } else {
    HWY_DYNAMIC_DISPATCH(mix_bfloat16)(halves, others, count, share, rest);
  }
}

}  // namespace stoker
#endif
