// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <png.h>

#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "image/other_images.h"

namespace stoker {
namespace {

constexpr std::array<uint8_t, 8> kSignature = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
/// Signature, then the chunk that every file begins with: length, "IHDR", width, height.
constexpr size_t kSizeAt = 16;

uint32_t big_endian(Bytes data, size_t at) {
  return __builtin_bswap32(load<uint32_t>(data.data() + at));
}

struct PngSource {
  Bytes left;
  char message[200] = {};
};

void read_bytes(png_structp png, png_bytep to, size_t size) {
  auto& source = *static_cast<PngSource*>(png_get_io_ptr(png));
  if (size > source.left.size()) png_error(png, "it ends too early");
  std::memcpy(to, source.left.data(), size);
  source.left = source.left.subspan(size);
}

[[noreturn]] void fail(png_structp png, png_const_charp message) {
  auto& source = *static_cast<PngSource*>(png_get_error_ptr(png));
  (void)std::snprintf(source.message, sizeof source.message, "%s", message);
  png_longjmp(png, 1);
}

void ignore(png_structp, png_const_charp) {}

/// As Pillow: 16 bits of gray are cut off at 255, 16 bits of colour lose the lower eight.
void set_conversions(png_structp png, png_infop info) {
  const int colors = png_get_color_type(png, info);
  if (colors == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (colors == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(png, info) < 8) {
    png_set_expand_gray_1_2_4_to_8(png);
  }
  if (colors != PNG_COLOR_TYPE_GRAY || png_get_bit_depth(png, info) < 16) png_set_strip_16(png);
  if ((colors & PNG_COLOR_MASK_ALPHA) != 0) png_set_strip_alpha(png);
  const bool gray16 = colors == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(png, info) == 16;
  if ((colors & PNG_COLOR_MASK_COLOR) == 0 && !gray16) png_set_gray_to_rgb(png);
  png_set_interlace_handling(png);
}

/// No object with a destructor lives here: libpng leaves by longjmp.
bool decode_all(png_structp png, png_infop info, PngSource& source, Size size, uint8_t** rows,
                bool& gray16) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_read_fn(png, &source, read_bytes);
  // Texts and profiles say nothing about pixels, and a small file can unfold to gigabytes of them.
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(png, info);
  // libpng also takes a header that comes later, behind a chunk that it does not know.
  if (png_get_image_width(png, info) != size.width ||
      png_get_image_height(png, info) != size.height) {
    png_error(png, "it does not begin with its header");
  }
  gray16 =
      png_get_color_type(png, info) == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(png, info) == 16;
  set_conversions(png, info);
  if (!gray16) png_set_filler(png, 0, PNG_FILLER_AFTER);
  png_read_update_info(png, info);
  png_read_image(png, rows);
  return true;
}

/// Two bytes of gray, in place, to a pixel of four.
void spread_gray16(uint8_t* row, uint32_t width) {
  for (uint32_t x = width; x-- > 0;) {
    const uint8_t gray = row[2 * x] != 0 ? 255 : row[2 * x + 1];
    std::memset(row + 4 * size_t{x}, gray, 4);
  }
}

}  // namespace

bool is_png(Bytes data) {
  return data.size() >= kSignature.size() &&
         std::memcmp(data.data(), kSignature.data(), kSignature.size()) == 0;
}

Size size_of_png(Bytes data) {
  if (data.size() < kSizeAt + 8) {
    throw Error(ErrorKind::corrupt, "damaged PNG: it ends within its header");
  }
  return {big_endian(data, kSizeAt + 4), big_endian(data, kSizeAt)};
}

void decode_png(Bytes data, PixelBuffer& pixels) {
  PngSource source{data, {}};
  std::vector<uint8_t*> rows(pixels.view().size.height);
  for (size_t y = 0; y < rows.size(); ++y) rows[y] = pixels.row(y);
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, fail, ignore);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  if (info == nullptr) {
    png_destroy_read_struct(&png, nullptr, nullptr);
    throw Error(ErrorKind::io, "PNG: out of memory");
  }
  bool gray16 = false;
  const bool good = decode_all(png, info, source, pixels.view().size, rows.data(), gray16);
  png_destroy_read_struct(&png, &info, nullptr);
  if (!good) throw Error(ErrorKind::corrupt, fmt::format("damaged PNG: {}", source.message));
  if (!gray16) return;
  for (uint8_t* row : rows) spread_gray16(row, pixels.view().size.width);
}

}  // namespace stoker
