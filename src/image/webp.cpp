// SPDX-License-Identifier: Apache-2.0
#include <webp/decode.h>
#include <webp/demux.h>

#include <cstring>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "image/other_images.h"

namespace stoker {
namespace {

const uint8_t* bytes_of(Bytes data) { return reinterpret_cast<const uint8_t*>(data.data()); }

WebPBitstreamFeatures features_of(Bytes data) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(bytes_of(data), data.size(), &features) != VP8_STATUS_OK) {
    throw Error(ErrorKind::corrupt, "damaged WebP: its header cannot be read");
  }
  return features;
}

}  // namespace

bool is_webp(Bytes data) {
  const std::string_view text = as_text(data);
  return text.size() >= 12 && text.starts_with("RIFF") && text.substr(8, 4) == "WEBP";
}

Size size_of_webp(Bytes data) {
  const WebPBitstreamFeatures features = features_of(data);
  return {static_cast<uint32_t>(features.height), static_cast<uint32_t>(features.width)};
}

void decode_webp(Bytes data, PixelBuffer& pixels) {
  const PixelView view = pixels.view();
  const size_t size = view.stride * view.size.height;
  if (features_of(data).has_animation == 0) {
    // Not premultiplied, so dropping the alpha leaves the colours.
    if (WebPDecodeRGBAInto(bytes_of(data), data.size(), pixels.row(0), size,
                           static_cast<int>(view.stride)) == nullptr) {
      throw Error(ErrorKind::corrupt, "damaged WebP: its pixels cannot be decoded");
    }
    return;
  }
  WebPAnimDecoderOptions options;
  WebPAnimDecoderOptionsInit(&options);
  options.color_mode = MODE_RGBA;
  const WebPData source{bytes_of(data), data.size()};
  const std::unique_ptr<WebPAnimDecoder, decltype(&WebPAnimDecoderDelete)> decoder(
      WebPAnimDecoderNew(&source, &options), WebPAnimDecoderDelete);
  uint8_t* frame = nullptr;
  int time = 0;
  if (decoder == nullptr || WebPAnimDecoderGetNext(decoder.get(), &frame, &time) == 0) {
    throw Error(ErrorKind::corrupt, "damaged WebP: its first frame cannot be decoded");
  }
  std::memcpy(pixels.row(0), frame, size);
}

}  // namespace stoker
