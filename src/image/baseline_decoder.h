// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "image/entropy_decoder.h"
#include "image/jpeg_header.h"
#include "image/pixels.h"

namespace stoker {

/// Baseline JPEGs, of which only what a region needs is decoded; the pixels are libjpeg-turbo's.
/// Keeps its memory; one per thread. docs/internals/decoder.md tells how it works.
class BaselineDecoder {
 public:
  /// Reads the header; `photo` must stay until decode() is done. Returns DecodePath::from_start, or
  /// why libjpeg-turbo has to decode it.
  DecodePath open(Bytes photo);
  Size size() const { return header_.size; }
  /// Whether the photo was not cut off; see has_jpeg_end.
  bool has_end() const;

  /// Whether a row index is that of the photo, whose CRC-32C is `crc`.
  bool fits(const RowIndexView& index, uint32_t crc) const;
  /// Makes the rows of a region, one after the other; begins at the nearest place that `index`
  /// knows, or at the beginning where it is null. Returns false where the photo is damaged, or may
  /// be: libjpeg-turbo then has to say what it is.
  /// REQUIRES: the region lies in the photo and is not empty; index, if any, fits.
  bool decode(const Region& region, const RowIndexView* index, PixelRows& rows);

 private:
  /// A component's samples of one row of MCUs, below the last row of those above.
  struct Plane {
    uint32_t wide = 1, high = 1;  // pixels that a sample stands for
    bool smooth = false;          // upsampled with its neighbours, not repeated
    std::vector<uint8_t> samples;
    size_t stride = 0;
    uint32_t left = 0;  // first column, of the component's
    std::vector<uint8_t> upsampled;

    /// Row `y` of the MCU row, -1 being the last of that above; column `x` of the component.
    uint8_t* at(int32_t y, int64_t x) {
      return samples.data() + static_cast<size_t>(y + 1) * stride + (kBefore + x - left);
    }
  };
  static constexpr int64_t kBefore = 64;  // bytes before each row: one sample is needed

  void set_planes(const Region& region);
  bool decode_row(uint32_t row, const RowIndexView* index);
  bool transform();
  void keep_last_rows();
  uint32_t ready_behind(uint32_t row) const;
  void make_pixels(const Region& region, uint32_t y, uint32_t row, uint8_t* to);
  const uint8_t* component_row(uint32_t number, const Region& region, uint32_t y, uint32_t row);

  Bytes photo_;
  JpegHeader header_;
  EntropyDecoder entropy_;
  std::array<Plane, 3> planes_;
  bool looks_up_and_down_ = false;  // some component is upsampled with rows above and below
  // MCUs that the region needs.
  uint32_t first_row_ = 0, end_row_ = 0, first_mcu_ = 0, end_mcu_ = 0;
};

}  // namespace stoker
