// SPDX-License-Identifier: Apache-2.0
#include "image/decode.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/crc32c.h"
#include "base/error.h"
#include "image/baseline_decoder.h"
#include "image/foreign.h"
#include "image/jpeg.h"
#include "image/other_images.h"
#include "image/vectors.h"

namespace stoker {
namespace {

struct Kind {
  ImageKind kind;
  std::string_view name;
  bool (*is)(Bytes data);
  Size (*size)(Bytes data);                         // null: JpegDecoder does it
  void (*decode)(Bytes data, PixelBuffer& pixels);  // likewise
};

constexpr std::array<Kind, 5> kKinds = {{
    {ImageKind::jpeg, "JPEG", is_jpeg, nullptr, nullptr},
    {ImageKind::png, "PNG", is_png, size_of_png, decode_png},
    {ImageKind::webp, "WebP", is_webp, size_of_webp, decode_webp},
    {ImageKind::gif, "GIF", is_gif, size_of_gif, decode_gif},
    {ImageKind::bmp, "BMP", is_bmp, size_of_bmp, decode_bmp},
}};

const Kind& kind_of(Bytes data) {
  for (const Kind& kind : kKinds) {
    if (kind.is(data)) return kind;
  }
  throw Error(data.empty() ? ErrorKind::corrupt : ErrorKind::unsupported,
              data.empty() ? "no bytes where an image should be" : describe_foreign(data));
}

/// A part of an image to pixels.
void copy_raw(const RawImage& image, const Region& region, PixelBuffer& pixels) {
  const size_t width = image.size.width;
  const size_t plane = image.planes ? image.size.pixels() : 1;  // bytes from channel to channel
  const size_t step = image.planes ? 1 : image.channels;        // from pixel to pixel
  const size_t second = image.channels == 3 ? plane : 0;
  const auto* const bytes = reinterpret_cast<const uint8_t*>(image.data.data());
  pixels.resize(region.size());
  for (uint32_t y = 0; y < region.height; ++y) {
    const uint8_t* from = bytes + ((region.top + y) * width + region.left) * step;
    uint8_t* to = pixels.row(y);
    for (uint32_t x = 0; x < region.width; ++x, from += step, to += 4) {
      to[0] = from[0];
      to[1] = from[second];
      to[2] = from[2 * second];
      to[3] = 255;
    }
  }
}

}  // namespace

struct ImageDecoder::State {
  BaselineDecoder baseline;
  JpegDecoder jpeg;
  bool jpeg_is_open = false;
  DecodePath path = DecodePath::other;
  Resampler resampler;
  PixelBuffer pixels;
  Bytes data;
  RawImage raw;
  ImageInfo info;

  /// libjpeg-turbo looks at a photo only where it has to decode it.
  Size open_jpeg() {
    path = baseline.open(data);
    jpeg_is_open = path != DecodePath::from_start;
    return jpeg_is_open ? jpeg.open(data) : baseline.size();
  }

  bool decode_baseline(const Region& region, const DecodeOptions& options, PixelRows& rows);
};

/// With our own decoder; false where libjpeg-turbo has to do it.
bool ImageDecoder::State::decode_baseline(const Region& region, const DecodeOptions& options,
                                          PixelRows& rows) {
  std::optional<RowIndexView> index;
  if (!options.row_index.empty()) index = RowIndexView::open(options.row_index);
  if (index && !baseline.fits(*index, options.crc ? *options.crc : crc32c(data))) index.reset();
  path = index ? DecodePath::indexed : DecodePath::from_start;
  if (baseline.decode(region, index ? &*index : nullptr, rows)) return true;
  path = DecodePath::damaged;
  return false;
}

ImageDecoder::ImageDecoder() : state_(std::make_unique<State>()) { choose_vectors(); }
ImageDecoder::~ImageDecoder() = default;

ImageInfo ImageDecoder::open(Bytes data) {
  const Kind& kind = kind_of(data);
  state_->data = data;
  if (kind.size != nullptr) state_->path = DecodePath::other;
  return opened({kind.kind, kind.size == nullptr ? state_->open_jpeg() : kind.size(data)},
                kind.name);
}

ImageInfo ImageDecoder::open(const RawImage& image) {
  state_->raw = image;
  state_->path = DecodePath::other;
  return opened({ImageKind::raw, image.size}, "array");
}

const ImageInfo& ImageDecoder::opened(ImageInfo info, std::string_view name) {
  const Size size = info.size;
  if (size.height == 0 || size.width == 0) {
    throw Error(ErrorKind::corrupt, fmt::format("damaged {}: it has no pixels", name));
  }
  if (size.pixels() > kMostPixels) {
    throw Error(ErrorKind::unsupported,
                fmt::format("{} of {} x {} pixels: {} million are the most that is decoded", name,
                            size.width, size.height, kMostPixels / 1'000'000));
  }
  return state_->info = info;
}

Size ImageDecoder::output_size(const DecodeOptions& options) const {
  const Size image = state_->info.size;
  if (options.crop && (!options.crop->fits(image) || options.crop->size().pixels() == 0)) {
    const Region& crop = *options.crop;
    throw Error(
        ErrorKind::usage,
        fmt::format("crop (top {}, left {}, height {}, width {}) is not in an image of "
                    "height {}, width {}",
                    crop.top, crop.left, crop.height, crop.width, image.height, image.width));
  }
  if (options.size) {
    if (options.size->pixels() == 0 || options.size->pixels() > kMostPixels) {
      throw Error(ErrorKind::usage, fmt::format("size ({}, {}) makes no sense",
                                                options.size->height, options.size->width));
    }
  }
  const Size size = resized(options);
  if (!options.window) return size;
  const Region& window = *options.window;
  if (!window.fits(size) || window.size().pixels() == 0) {
    throw Error(ErrorKind::usage, "the window is not in the resized image");
  }
  return window.size();
}

DecodePath ImageDecoder::path() const { return state_->path; }

Size ImageDecoder::resized(const DecodeOptions& options) const {
  if (options.size) return *options.size;
  return options.crop ? options.crop->size() : state_->info.size;
}

PixelView ImageDecoder::pixels_of(const Region& region, const DecodeOptions& options) {
  if (state_->info.kind == ImageKind::raw) {
    copy_raw(state_->raw, region, state_->pixels);
    return state_->pixels.view();
  }
  const Kind& kind = kKinds[static_cast<size_t>(state_->info.kind)];
  if (kind.decode == nullptr) {
    if (!state_->jpeg_is_open) (void)state_->jpeg.open(state_->data);
    state_->jpeg_is_open = true;
    return state_->jpeg.decode(
        region, options.like_pillow ? JpegDamage::pillows : JpegDamage::anywhere, state_->pixels);
  }
  state_->pixels.resize(state_->info.size);
  kind.decode(state_->data, state_->pixels);
  return state_->pixels.view().part(region);
}

void ImageDecoder::decode(const DecodeOptions& options, uint8_t* out, size_t stride) {
  output_size(options);
  const Size image = state_->info.size;
  const Region crop = options.crop.value_or(Region{0, 0, image.height, image.width});
  const Size size = resized(options);
  const Region window = options.window.value_or(Region{0, 0, size.height, size.width});
  const bool resizes = crop.size() != size;
  Resampler& resampler = state_->resampler;
  Region part = resizes ? resampler.plan({crop.size(), size, window, options.resample}) : window;
  part.top += crop.top;
  part.left += crop.left;
  // Pillow may refuse a photo for what lies behind the part: libjpeg-turbo reads on.
  const bool could = state_->info.kind == ImageKind::jpeg && !state_->jpeg_is_open;
  const bool baseline = could && !options.like_pillow && state_->baseline.has_end();
  if (could && !baseline) {
    state_->path = options.like_pillow ? DecodePath::unusual : DecodePath::damaged;
  }
  PixelRows* rows = baseline && resizes ? resampler.take_rows(options.flip) : nullptr;
  if (rows != nullptr && state_->decode_baseline(part, options, *rows)) {
    return resampler.finish(out, stride);
  }
  bool done = false;
  if (baseline && rows == nullptr) {
    BufferRows buffer(state_->pixels, part.size());
    done = state_->decode_baseline(part, options, buffer);
  }
  const PixelView pixels = done ? state_->pixels.view() : pixels_of(part, options);
  if (resizes) return resampler.run(pixels, options.flip, out, stride);
  for (uint32_t y = 0; y < window.height; ++y) {
    pack_row(pixels.row(y), window.width, options.flip, out + y * stride);
  }
}

}  // namespace stoker
