// SPDX-License-Identifier: Apache-2.0
// Two bytes: the length of a row index, which follows, then a photo that it need not belong to. As
// it is, it makes no difference to the pixels. With a checksum that is made right, and so that it
// says to be the photo's, it may say anything: it leads to an error or to pixels, the same again.
#include <cstdlib>
#include <optional>
#include <vector>

#include "base/crc32c.h"
#include "base/error.h"
#include "image/decode.h"

namespace stoker {
namespace {

/// More would only be slow.
constexpr uint64_t kMostPixels = 1 << 18;

using Pixels = std::vector<uint8_t>;

std::optional<Pixels> decode(Bytes photo, Bytes row_index, bool middle) {
  try {
    ImageDecoder decoder;
    const Size size = decoder.open(photo).size;
    if (size.pixels() > kMostPixels) return std::nullopt;
    DecodeOptions options;
    options.crop = Region{0, 0, size.height, size.width};
    if (middle) {
      options.crop =
          Region{size.height / 3, size.width / 3, (size.height + 2) / 3, (size.width + 2) / 3};
    }
    options.row_index = row_index;
    Pixels pixels(options.crop->size().pixels() * 3);
    decoder.decode(options, pixels.data(), size_t{options.crop->width} * 3);
    return pixels;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void try_input(Bytes input) {
  if (input.size() < 2) return;
  const size_t length = load<uint16_t>(input.data());
  if (length > input.size() - 2) return;
  const Bytes row_index = input.subspan(2, length);
  const Bytes photo = input.subspan(2 + length);
  for (const bool middle : {false, true}) {
    if (decode(photo, row_index, middle) != decode(photo, {}, middle)) std::abort();
  }
  constexpr size_t kPhotoSize = 4;
  constexpr size_t kPhotoCrc = 8;
  if (length < 32) return;
  std::vector<std::byte> forged(row_index.begin(), row_index.end());
  store(forged.data() + kPhotoSize, static_cast<uint32_t>(photo.size()));
  store(forged.data() + kPhotoCrc, crc32c(photo));
  store(forged.data() + length - 4, crc32c(Bytes(forged).first(length - 4)));
  for (const bool middle : {false, true}) {
    if (decode(photo, forged, middle) != decode(photo, forged, middle)) std::abort();
  }
}

}  // namespace
}  // namespace stoker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  stoker::try_input({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
