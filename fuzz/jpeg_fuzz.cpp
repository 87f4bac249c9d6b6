// SPDX-License-Identifier: Apache-2.0
// The first four bytes of an input choose a region; the rest is a JPEG. Our own decoder gives what
// libjpeg-turbo gives, or leaves it to it; its row index, if it has one, changes nothing.
#include <cstdlib>
#include <optional>
#include <vector>

#include "base/crc32c.h"
#include "base/error.h"
#include "image/decode.h"
#include "image/jpeg.h"
#include "image/row_index.h"

namespace stoker {
namespace {

/// More would only be slow.
constexpr uint64_t kMostPixels = 1 << 18;

using Pixels = std::vector<uint8_t>;

Region region_of(Size size, Bytes choice) {
  const auto part = [&](size_t i, uint32_t of) {
    return static_cast<uint32_t>(uint64_t{of} * std::to_integer<uint32_t>(choice[i]) / 256);
  };
  const uint32_t top = part(0, size.height);
  const uint32_t left = part(1, size.width);
  return {top, left, 1 + part(2, size.height - top), 1 + part(3, size.width - left)};
}

std::optional<Pixels> by_libjpeg(Bytes photo, Bytes choice) {
  try {
    JpegDecoder decoder;
    const Region region = region_of(decoder.open(photo), choice);
    PixelBuffer buffer;
    const PixelView view = decoder.decode(region, JpegDamage::anywhere, buffer);
    Pixels pixels(region.size().pixels() * 3);
    for (uint32_t y = 0; y < region.height; ++y) {
      pack_row(view.row(y), region.width, false, pixels.data() + size_t{y} * region.width * 3);
    }
    return pixels;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<Pixels> by_us(Bytes photo, Bytes choice, Bytes row_index) {
  try {
    ImageDecoder decoder;
    DecodeOptions options;
    options.crop = region_of(decoder.open(photo).size, choice);
    options.row_index = row_index;
    Pixels pixels(options.crop->size().pixels() * 3);
    decoder.decode(options, pixels.data(), size_t{options.crop->width} * 3);
    return pixels;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void try_input(Bytes input) {
  if (input.size() < 4 || !is_jpeg(input.subspan(4))) return;
  const Bytes choice = input.first(4);
  const Bytes photo = input.subspan(4);
  try {
    if (ImageDecoder().open(photo).size.pixels() > kMostPixels) return;
  } catch (const Error&) {
    return;
  }
  const std::optional<Pixels> expected = by_libjpeg(photo, choice);
  const std::optional<Pixels> made = by_us(photo, choice, {});
  // libjpeg-turbo reads all of the photo, and may find damage after what we decode.
  if (expected && made != expected) std::abort();
  for (const uint32_t every : {0U, 3U}) {
    RowIndexer indexer(every);
    if (indexer.make(photo, crc32c(photo)) != DecodePath::indexed) continue;
    if (by_us(photo, choice, indexer.bytes()) != made) std::abort();
  }
}

}  // namespace
}  // namespace stoker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  stoker::try_input({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
