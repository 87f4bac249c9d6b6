// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "image/pixels.h"

namespace stoker {

/// How a JPEG for a test is written, by libjpeg-turbo.
struct JpegSample {
  Size size;
  std::array<std::array<int, 2>, 3> sampling = {{{1, 1}, {1, 1}, {1, 1}}};  // across, down
  bool gray = false, rgb = false, progressive = false, arithmetic = false, optimize = false;
  int quality = 90;
  unsigned restart = 0;  // MCUs
  unsigned seed = 1;     // of what it shows
};

/// Shapes, a gradient and noise.
std::vector<std::byte> write_jpeg(const JpegSample& sample);

/// The usual samplings and some that hardly anybody uses, each with a name for messages.
struct NamedSampling {
  const char* name;
  std::array<std::array<int, 2>, 3> sampling;
};
inline constexpr std::array<NamedSampling, 10> kSamplings = {{
    {"4:4:4", {{{1, 1}, {1, 1}, {1, 1}}}},
    {"4:2:0", {{{2, 2}, {1, 1}, {1, 1}}}},
    {"4:2:2", {{{2, 1}, {1, 1}, {1, 1}}}},
    {"4:4:0", {{{1, 2}, {1, 1}, {1, 1}}}},
    {"4:1:1", {{{4, 1}, {1, 1}, {1, 1}}}},
    {"4:1:0", {{{4, 2}, {1, 1}, {1, 1}}}},
    {"4:2:2 with two rows of blocks", {{{2, 2}, {1, 2}, {1, 2}}}},
    {"4:4:4 with two columns of blocks", {{{2, 1}, {2, 1}, {2, 1}}}},
    {"chroma of two kinds", {{{2, 2}, {1, 2}, {2, 1}}}},
    {"chroma of a fourth of the height", {{{1, 4}, {1, 1}, {1, 2}}}},
}};

}  // namespace stoker
