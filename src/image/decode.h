// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "image/decode_path.h"
#include "image/pixels.h"
#include "image/resample.h"

namespace stoker {

enum class ImageKind : uint8_t { jpeg, png, webp, gif, bmp, raw };

struct ImageInfo {
  ImageKind kind = ImageKind::jpeg;
  Size size;
};

/// An image that is not encoded: bytes, of a pixel one (gray) or three (red, green, blue), which
/// follow each other, or plane by plane.
struct RawImage {
  Bytes data;
  Size size;
  uint32_t channels = 3;
  bool planes = false;
};

/// What is wanted of an image. Pixels are those of Pillow's
/// open(…).convert("RGB").crop(…).resize(…).crop(window), bit for bit; only what the window needs
/// is decoded.
struct DecodeOptions {
  std::optional<Region> crop;    // of the image; all of it where none is given
  std::optional<Size> size;      // to which the crop is resized; its own where none is given
  std::optional<Region> window;  // of the resized crop, that is written; all of it where none is
  Resample resample = Resample::bilinear;
  bool flip = false;  // mirrored left to right, after the resize
  /// A damaged photo gives the pixels that Pillow gives for it, instead of an error.
  bool like_pillow = false;
  /// Where the rows of a JPEG begin (image/row_index.h); empty: not known. One that belongs to
  /// another photo is not used.
  Bytes row_index;
  /// CRC-32C of the image, where the caller knows it; computed where a row index wants it.
  std::optional<uint32_t> crc;
};

/// Decodes images, one after the other; keeps its memory. One per thread.
class ImageDecoder {
 public:
  /// As Pillow's limit: a larger image is an attack, or should be made smaller first.
  static constexpr uint64_t kMostPixels = 178'956'970;

  ImageDecoder();
  ~ImageDecoder();
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;

  /// Looks at the header; `data` must stay until decode() is done. Throws Error(corrupt) where it
  /// is damaged, Error(unsupported) where it is no image that we know.
  ImageInfo open(Bytes data);
  /// The same for one that needs no decoding.
  /// REQUIRES: data has a byte for every channel of every pixel.
  ImageInfo open(const RawImage& image);
  /// Size of what decode() writes. Throws Error(usage) where the crop is not in the image.
  Size output_size(const DecodeOptions& options) const;
  /// Writes the opened image to `out`: rows of three bytes per pixel, `stride` bytes apart.
  void decode(const DecodeOptions& options, uint8_t* out, size_t stride);
  /// Which way the last decode() took.
  DecodePath path() const;

 private:
  const ImageInfo& opened(ImageInfo info, std::string_view name);
  Size resized(const DecodeOptions& options) const;
  PixelView pixels_of(const Region& region, const DecodeOptions& options);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker
