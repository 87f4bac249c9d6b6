// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "image/pixels.h"

namespace stoker {

bool is_jpeg(Bytes data);

/// Which damage is Error(corrupt).
enum class JpegDamage : uint8_t {
  anywhere,    // all that libjpeg-turbo warns of, in its words
  pillows,     // what Pillow refuses; for the rest there are the pixels that it gives
  on_the_way,  // as `anywhere`, but nothing after the region is looked at
};

/// JPEGs through libjpeg-turbo, of which only the blocks that a region needs are turned into
/// pixels.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  /// Reads the header; `data` must stay until decode() is done.
  Size open(Bytes data);
  /// The pixels of a region of the opened photo; they lie in `buffer`, among others.
  PixelView decode(const Region& region, JpegDamage damage, PixelBuffer& buffer);

  /// Decodes all coefficients of the opened photo; returns false where it is damaged.
  bool read_coefficients();
  /// After that: a row of a component's blocks, each of 64 coefficients in rows; null where there
  /// is none.
  const int16_t* coefficients(uint32_t component, uint32_t row);
  void drop_coefficients();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker
