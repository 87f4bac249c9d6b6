// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "image/resample.h"

namespace stoker {

// The two passes of a resize, for whatever vectors the CPU has (chosen when first called); every
// path gives the same bits. A weight of 22 bits is multiplied in pieces: three of 8 bits where a
// CPU sums products of four bytes at once (VNNI), elsewhere two that fit the 16-bit
// multiply-and-add.

/// Longer windows are summed in plain C++: pieces of 15 bits would not fit 32 bits.
constexpr uint32_t kMostTaps = 256;

/// Fills `packed`; the rows that are made with it are mirrored where `flip` says so.
void pack_weights(const ResampleWeights& weights, bool flip, PackedWeights& packed);

/// Makes every row of `from` as wide as `weights` says; they become those of `to` from `to_row` on,
/// with as many bytes for a pixel as `packed` says, four bytes for a pixel from row to row.
void resample_rows(const PixelView& from, const ResampleWeights& weights,
                   const PackedWeights& packed, PixelBuffer& to, uint32_t to_row);

/// One row of the image that `weights` makes out of the first `bytes` of the rows of `from`,
/// whatever they are. `to` has room for PixelView::kSlack bytes more than that.
void resample_column(const PixelView& from, size_t bytes, const ResampleWeights& weights,
                     uint32_t row, uint8_t* to);

/// The same in plain C++: for the tests, and for windows too long for the sums above.
void resample_rows_plainly(const PixelView& from, const ResampleWeights& weights, bool flip,
                           PixelBuffer& to, uint32_t to_row);
void resample_column_plainly(const PixelView& from, size_t bytes, const ResampleWeights& weights,
                             uint32_t row, uint8_t* to);
void pack_row_plainly(const uint8_t* from, uint32_t width, bool flip, uint8_t* out);

}  // namespace stoker
