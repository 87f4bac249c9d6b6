// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace stoker {

/// Which decoder an image took, and why. In the order in which people read them.
enum class DecodePath : uint8_t {
  indexed,      // ours, by the photo's row index
  from_start,   // ours, from the beginning of the photo: it has no row index
  progressive,  // from here on libjpeg-turbo
  inks,
  arithmetic,
  unusual,
  damaged,
  differs,
  other,  // no JPEG
};

inline constexpr size_t kDecodePaths = static_cast<size_t>(DecodePath::other) + 1;

/// In words, for people.
inline constexpr std::array<std::string_view, kDecodePaths> kDecodePathNames = {
    "own decoder, row index",           "own decoder, no row index",
    "libjpeg-turbo: progressive",       "libjpeg-turbo: CMYK",
    "libjpeg-turbo: arithmetic coding", "libjpeg-turbo: unusual layout",
    "libjpeg-turbo: damaged or odd",    "libjpeg-turbo: coefficients differ",
    "other library: not a JPEG",
};

constexpr std::string_view name_of(DecodePath path) {
  return kDecodePathNames[static_cast<size_t>(path)];
}

}  // namespace stoker
