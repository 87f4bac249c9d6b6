// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace stoker {

/// CRC-32C (Castagnoli) of `data`, going on from `crc` (0 to begin). Inverted before and after
/// as usual: the CRC of "123456789" is 0xE3069283.
uint32_t crc32c(std::span<const std::byte> data, uint32_t crc = 0);

/// The CRC of A followed by B from the CRCs of both and B's length. At most eight multiplications,
/// whatever the length.
uint32_t crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t length_b);

/// The form TFRecord stores, so that a CRC over data which itself holds CRCs stays meaningful.
constexpr uint32_t crc32c_mask(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u; }

constexpr uint32_t crc32c_unmask(uint32_t masked) {
  const uint32_t rotated = masked - 0xA282EAD8u;
  return (rotated >> 17) | (rotated << 15);
}

struct Crc32cKernel {
  std::string_view name;
  /// Works on the bare state: the caller inverts before and after.
  uint32_t (*run)(uint32_t state, const std::byte* data, size_t size);
};

/// The kernels this CPU can run, fastest first; crc32c() uses the first. The last is portable.
std::span<const Crc32cKernel> crc32c_kernels();

}  // namespace stoker
