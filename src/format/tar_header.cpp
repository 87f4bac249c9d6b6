// SPDX-License-Identifier: Apache-2.0
#include "format/tar_header.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <limits>

namespace stoker {
namespace {

constexpr uint64_t kTooLarge = std::numeric_limits<uint64_t>::max();

std::optional<uint64_t> base_256(const char* field, size_t size) {
  const auto first = static_cast<unsigned char>(field[0]);
  if ((first & 0x40U) != 0) return std::nullopt;  // negative
  uint64_t value = first & 0x3FU;
  for (size_t i = 1; i < size; ++i) {
    if (value >> 56 != 0) return kTooLarge;
    value = value << 8 | static_cast<unsigned char>(field[i]);
  }
  return value;
}

}  // namespace

uint32_t plain_sum(const std::byte* block) {
#if defined(__SSE2__)
  __m128i sums = _mm_setzero_si128();
  for (size_t i = 0; i < kTarBlock; i += sizeof sums) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + i));
    sums = _mm_add_epi64(sums, _mm_sad_epu8(bytes, _mm_setzero_si128()));
  }
  return static_cast<uint32_t>(_mm_cvtsi128_si32(sums) +
                               _mm_cvtsi128_si32(_mm_unpackhi_epi64(sums, sums)));
#else
  // Eight bytes at a time in four lanes of 16 bits: 64 words of two bytes at most 255 fit.
  constexpr uint64_t kEven = 0x00FF00FF00FF00FFu;
  uint64_t lanes = 0;
  for (size_t i = 0; i < kTarBlock; i += sizeof lanes) {
    const auto word = load<uint64_t>(block + i);
    lanes += (word & kEven) + ((word >> 8) & kEven);
  }
  constexpr uint64_t kLow = 0x0000FFFF0000FFFFu;
  lanes = (lanes & kLow) + ((lanes >> 16) & kLow);
  return static_cast<uint32_t>(lanes + (lanes >> 32));
#endif
}

std::optional<uint64_t> tar_number(const char* field, size_t size) {
  if ((static_cast<unsigned char>(field[0]) & 0x80U) != 0) return base_256(field, size);
  size_t at = 0;
  while (at < size && field[at] == ' ') ++at;
  uint64_t value = 0;  // twelve digits of three bits fit
  for (; at < size; ++at) {
    const unsigned digit = static_cast<unsigned char>(field[at]) - unsigned{'0'};
    if (digit > 7) break;
    value = value << 3 | digit;
  }
  if (at < size && field[at] != ' ' && field[at] != '\0') return std::nullopt;
  return value;
}

TarSum sum_of(const TarHeader& header) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&header);
  TarSum sum;
  const uint32_t all = plain_sum(bytes);
  if (all == 0) {
    sum.zero = true;
    return sum;
  }
  // The checksum is that of a header whose checksum field holds eight spaces.
  sum.computed = all + 8 * unsigned{' '};
  for (const char byte : header.checksum) sum.computed -= static_cast<unsigned char>(byte);
  const auto stated = tar_number(header.checksum, sizeof header.checksum);
  if (!stated) return sum;
  sum.is_number = true;
  sum.stated = *stated;
  sum.right = sum.stated == sum.computed;
  if (sum.right) return sum;
  // Some old programs add up signed bytes.
  int64_t signed_sum = 8 * int64_t{' '};
  for (size_t i = 0; i < kTarBlock; ++i) signed_sum += static_cast<signed char>(bytes[i]);
  for (const char byte : header.checksum) signed_sum -= static_cast<signed char>(byte);
  sum.right = signed_sum >= 0 && sum.stated == static_cast<uint64_t>(signed_sum);
  return sum;
}

}  // namespace stoker
