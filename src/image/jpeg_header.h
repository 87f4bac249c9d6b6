// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "image/decode_path.h"
#include "image/pixels.h"

namespace stoker {

/// What stands in front of the entropy-coded bytes of a baseline JPEG.
struct JpegHeader {
  /// A Huffman table as it is written: how many codes of each length, and what they mean.
  struct Codes {
    std::array<uint8_t, 17> count{};  // by length; the first stays 0
    const uint8_t* symbols = nullptr;
    uint32_t symbol_count = 0;
  };
  struct Component {
    uint8_t id = 0;
    uint8_t across = 1, down = 1;  // blocks of an MCU
    std::array<uint16_t, 64> quantization{};
    Codes dc, ac;
  };

  Size size;
  uint32_t component_count = 0;  // one or three
  std::array<Component, 3> components;
  bool is_rgb = false;       // the three are red, green and blue
  uint32_t restart = 0;      // MCUs from one restart marker to the next; 0: there are none
  size_t entropy_begin = 0;  // where the entropy-coded bytes begin

  // Of the component that has most, which is always the first.
  uint32_t across() const { return components[0].across; }
  uint32_t down() const { return components[0].down; }
  uint32_t mcus_per_row() const { return divided_up(size.width, 8 * across()); }
  uint32_t mcu_rows() const { return divided_up(size.height, 8 * down()); }
  /// Samples that a component has: fewer than its blocks hold.
  Size samples(const Component& component) const {
    return {divided_up(size.height * component.down, down()),
            divided_up(size.width * component.across, across())};
  }

 private:
  static uint32_t divided_up(uint32_t value, uint32_t by) { return (value + by - 1) / by; }
};

/// Reads the header of a photo, whose bytes `header` points into from then on. Returns
/// DecodePath::from_start where our own decoder takes the photo, otherwise why it does not:
/// whatever is odd about it, libjpeg-turbo says best.
DecodePath read_jpeg_header(Bytes photo, JpegHeader& header);

/// Whether an end-of-image marker comes behind `from`. A photo without one was cut off somewhere,
/// perhaps behind what is wanted; Pillow refuses it, too.
bool has_jpeg_end(Bytes photo, size_t from);

/// The n-th coefficient of a block, in the order of a JPEG, is the kNaturalOrder[n]-th in rows.
extern const std::array<uint8_t, 64> kNaturalOrder;

}  // namespace stoker
