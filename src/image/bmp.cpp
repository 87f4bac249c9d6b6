// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "image/other_images.h"

namespace stoker {
namespace {

// Bitmaps of Windows 3 and later: a header of at least 40 bytes behind the 14 of the file.
constexpr size_t kFileHeader = 14;
constexpr size_t kSmallestHeader = 40;

constexpr uint32_t kPlain = 0;  // kinds of compression
constexpr uint32_t kMasks = 3;

struct Bitmap {
  uint64_t pixels_at = 0;
  uint32_t header = 0;
  uint32_t width = 0, height = 0;
  bool bottom_up = true;
  uint16_t bits = 0;
  uint32_t compression = 0;
  uint32_t colors = 0;

  uint64_t stride() const { return (uint64_t{width} * bits + 31) / 32 * 4; }
};

[[noreturn]] void refuse(std::string_view why) {
  throw Error(ErrorKind::corrupt, fmt::format("damaged BMP: {}", why));
}

Bitmap header_of(Bytes data) {
  if (data.size() < kFileHeader + kSmallestHeader) refuse("it ends within its header");
  const auto at = [&](size_t offset) { return load<uint32_t>(data.data() + offset); };
  Bitmap bitmap;
  bitmap.pixels_at = at(10);
  bitmap.header = at(14);
  if (bitmap.header < kSmallestHeader) {
    throw Error(ErrorKind::unsupported, "BMP of OS/2: convert it to PNG");
  }
  const auto width = static_cast<int32_t>(at(18));
  const auto height = static_cast<int32_t>(at(22));
  if (width <= 0 || height == 0 || height == std::numeric_limits<int32_t>::min()) {
    refuse("its size makes no sense");
  }
  bitmap.width = static_cast<uint32_t>(width);
  bitmap.bottom_up = height > 0;
  bitmap.height = static_cast<uint32_t>(height > 0 ? height : -height);
  bitmap.bits = load<uint16_t>(data.data() + 28);
  bitmap.compression = at(30);
  bitmap.colors = at(46);
  return bitmap;
}

/// Shift of a channel of eight bits, which is all that is read.
unsigned shift_of(uint32_t mask) {
  for (unsigned shift = 0; shift < 32; shift += 8) {
    if (mask == 0xFFU << shift) return shift;
  }
  throw Error(ErrorKind::unsupported, "BMP with channels that are not bytes: convert it to PNG");
}

}  // namespace

bool is_bmp(Bytes data) { return as_text(data).starts_with("BM"); }

Size size_of_bmp(Bytes data) {
  const Bitmap bitmap = header_of(data);
  return {bitmap.height, bitmap.width};
}

void decode_bmp(Bytes data, PixelBuffer& pixels) {
  const Bitmap bitmap = header_of(data);
  const bool palette = bitmap.bits == 1 || bitmap.bits == 4 || bitmap.bits == 8;
  const bool masks = bitmap.compression == kMasks && bitmap.bits == 32;
  if ((!palette && bitmap.bits != 24 && bitmap.bits != 32) ||
      (bitmap.compression != kPlain && !masks)) {
    throw Error(ErrorKind::unsupported,
                fmt::format("BMP of {} bits, compression {}: convert it to PNG", bitmap.bits,
                            bitmap.compression));
  }
  if (bitmap.pixels_at > data.size() ||
      bitmap.stride() * bitmap.height > data.size() - bitmap.pixels_at) {
    refuse("it ends too early");
  }
  std::array<std::array<uint8_t, 4>, 256> colors{};
  if (palette) {
    const uint64_t count = bitmap.colors == 0 ? uint64_t{1} << bitmap.bits : bitmap.colors;
    const uint64_t begin = kFileHeader + uint64_t{bitmap.header};
    if (count > 256 || begin + count * 4 > data.size()) refuse("its palette is not all there");
    for (size_t i = 0; i < count; ++i) {
      const std::byte* color = data.data() + begin + 4 * i;
      for (int channel = 0; channel < 3; ++channel) {
        colors[i][channel] = static_cast<uint8_t>(color[2 - channel]);
      }
    }
  }
  std::array<unsigned, 3> shifts = {16, 8, 0};
  if (masks) {
    if (data.size() < 54 + 12) refuse("it ends within its header");
    for (size_t i = 0; i < 3; ++i) shifts[i] = shift_of(load<uint32_t>(data.data() + 54 + 4 * i));
  }
  for (uint32_t y = 0; y < bitmap.height; ++y) {
    const uint64_t line = bitmap.bottom_up ? bitmap.height - 1 - y : y;
    const auto* from =
        reinterpret_cast<const uint8_t*>(data.data()) + bitmap.pixels_at + line * bitmap.stride();
    uint8_t* to = pixels.row(y);
    for (uint32_t x = 0; x < bitmap.width; ++x, to += 4) {
      if (palette) {
        const unsigned in_byte = 8U / bitmap.bits;
        const unsigned shift = 8U - bitmap.bits * (x % in_byte + 1);
        const unsigned index = (from[x / in_byte] >> shift) & ((1U << bitmap.bits) - 1);
        std::memcpy(to, colors[index].data(), 4);
      } else if (bitmap.bits == 24) {
        for (int channel = 0; channel < 3; ++channel)
          to[channel] = from[3 * size_t{x} + 2 - channel];
      } else {
        uint32_t pixel = 0;
        std::memcpy(&pixel, from + 4 * size_t{x}, 4);
        for (int channel = 0; channel < 3; ++channel) {
          to[channel] = static_cast<uint8_t>(pixel >> shifts[channel]);
        }
      }
    }
  }
}

}  // namespace stoker
