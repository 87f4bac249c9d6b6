// SPDX-License-Identifier: Apache-2.0
// The first two bytes of an input choose crop, size, filter and manner; the rest is the image.
// Whatever it is: pixels or an error, and the same pixels again.
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "image/decode.h"

namespace stoker {
namespace {

/// More would only be slow.
constexpr uint64_t kMostPixels = 1 << 18;

std::vector<uint8_t> decode(Bytes data, unsigned choice) {
  ImageDecoder decoder;
  const Size size = decoder.open(data).size;
  if (size.pixels() > kMostPixels) return {};
  DecodeOptions options;
  if (choice % 2 == 1) {
    options.crop = Region{size.height / 3, size.width / 4, size.height - size.height / 3,
                          (size.width - size.width / 4 + 1) / 2};
  }
  if (choice / 2 % 4 != 0) options.size = Size{choice / 2 % 4 * 5, 17};
  options.resample = static_cast<Resample>(choice / 8 % 5);
  options.flip = choice / 64 % 2 == 1;
  options.like_pillow = choice / 128 % 2 == 1;
  const Size output = decoder.output_size(options);
  std::vector<uint8_t> pixels(output.pixels() * 3);
  decoder.decode(options, pixels.data(), size_t{output.width} * 3);
  return pixels;
}

void try_input(Bytes input) {
  if (input.size() < 2) return;
  const unsigned choice = load<uint16_t>(input.data());
  try {
    if (decode(input.subspan(2), choice) != decode(input.subspan(2), choice)) std::abort();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::io) std::abort();
  }
}

}  // namespace
}  // namespace stoker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  stoker::try_input({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
