// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gif_lib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/error.h"
#include "image/other_images.h"

namespace stoker {
namespace {

int read_bytes(GifFileType* gif, GifByteType* to, int size) {
  auto& left = *static_cast<Bytes*>(gif->UserData);
  const size_t count = std::min(left.size(), static_cast<size_t>(size));
  std::memcpy(to, left.data(), count);
  left = left.subspan(count);
  return static_cast<int>(count);
}

[[noreturn]] void refuse(int error) {
  const char* words = GifErrorString(error);
  throw Error(ErrorKind::corrupt,
              fmt::format("damaged GIF: {}", words != nullptr ? words : "cannot be read"));
}

struct CloseGif {
  void operator()(GifFileType* gif) const { DGifCloseFile(gif, nullptr); }
};
using Gif = std::unique_ptr<GifFileType, CloseGif>;

/// Moves to the first image; its transparent colour, or -1.
int find_image(GifFileType* gif) {
  int transparent = NO_TRANSPARENT_COLOR;
  for (;;) {
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    if (DGifGetRecordType(gif, &type) == GIF_ERROR) refuse(gif->Error);
    if (type == IMAGE_DESC_RECORD_TYPE) break;
    if (type != EXTENSION_RECORD_TYPE) refuse(D_GIF_ERR_NO_IMAG_DSCR);
    int code = 0;
    GifByteType* bytes = nullptr;
    if (DGifGetExtension(gif, &code, &bytes) == GIF_ERROR) refuse(gif->Error);
    while (bytes != nullptr) {
      GraphicsControlBlock control;
      if (code == GRAPHICS_EXT_FUNC_CODE &&
          DGifExtensionToGCB(bytes[0], bytes + 1, &control) == GIF_OK) {
        transparent = control.TransparentColor;
      }
      if (DGifGetExtensionNext(gif, &bytes) == GIF_ERROR) refuse(gif->Error);
    }
  }
  if (DGifGetImageDesc(gif) == GIF_ERROR) refuse(gif->Error);
  return transparent;
}

}  // namespace

bool is_gif(Bytes data) {
  const std::string_view text = as_text(data);
  return text.starts_with("GIF87a") || text.starts_with("GIF89a");
}

Size size_of_gif(Bytes data) {
  if (data.size() < 10) throw Error(ErrorKind::corrupt, "damaged GIF: it ends within its header");
  return {load<uint16_t>(data.data() + 8), load<uint16_t>(data.data() + 6)};
}

void decode_gif(Bytes data, PixelBuffer& pixels) {
  int error = 0;
  const Gif gif(DGifOpen(&data, read_bytes, &error));
  if (gif == nullptr) refuse(error);
  const int transparent = find_image(gif.get());
  const GifImageDesc& frame = gif->Image;
  const ColorMapObject* colors = frame.ColorMap != nullptr ? frame.ColorMap : gif->SColorMap;
  if (colors == nullptr) throw Error(ErrorKind::unsupported, "GIF without a palette");
  const Size size = pixels.view().size;
  if (frame.Left < 0 || frame.Top < 0 || frame.Width <= 0 || frame.Height <= 0 ||
      static_cast<uint32_t>(frame.Left + frame.Width) > size.width ||
      static_cast<uint32_t>(frame.Top + frame.Height) > size.height) {
    throw Error(ErrorKind::unsupported, "GIF whose first frame reaches beyond its canvas");
  }
  const auto put = [&](uint8_t* to, int index) {
    const GifColorType color =
        index < colors->ColorCount ? colors->Colors[index] : GifColorType{0, 0, 0};
    const uint8_t pixel[4] = {color.Red, color.Green, color.Blue, 255};
    std::memcpy(to, pixel, 4);
  };
  // Around the frame: the transparent colour where there is one, else the background's.
  const int around = transparent != NO_TRANSPARENT_COLOR ? transparent : gif->SBackGroundColor;
  for (uint32_t y = 0; y < size.height; ++y) {
    for (uint32_t x = 0; x < size.width; ++x) put(pixels.row(y) + 4 * size_t{x}, around);
  }
  std::vector<GifByteType> line(frame.Width);
  constexpr int kFirst[] = {0, 4, 2, 1};
  constexpr int kStep[] = {8, 8, 4, 2};
  for (int pass = 0; pass < (frame.Interlace ? 4 : 1); ++pass) {
    const int step = frame.Interlace ? kStep[pass] : 1;
    for (int y = frame.Interlace ? kFirst[pass] : 0; y < frame.Height; y += step) {
      if (DGifGetLine(gif.get(), line.data(), frame.Width) == GIF_ERROR) refuse(gif->Error);
      uint8_t* row = pixels.row(frame.Top + y) + 4 * size_t(frame.Left);
      for (int x = 0; x < frame.Width; ++x) put(row + 4 * size_t(x), line[x]);
    }
  }
}

}  // namespace stoker
