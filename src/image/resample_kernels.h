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

/// Puts weights into the order of the CPU's vectors, for resample_rows.
void pack_weights(const ResampleWeights& weights, std::vector<int32_t>& packed);

/// Makes every row of `from` as wide as `weights` says, mirrored where `flip` says so; they become
/// those of `to` from `to_row` on.
void resample_rows(const PixelView& from, const ResampleWeights& weights,
                   const std::vector<int32_t>& packed, bool flip, PixelBuffer& to, uint32_t to_row);

/// One row of the image that `weights` makes out of the rows of `from`. `to` has room for
/// PixelView::kSlack bytes more than the row.
void resample_column(const PixelView& from, const ResampleWeights& weights, uint32_t row,
                     uint8_t* to);

/// The same in plain C++: for the tests, and for windows too long for the sums above.
void resample_rows_plainly(const PixelView& from, const ResampleWeights& weights, bool flip,
                           PixelBuffer& to, uint32_t to_row);
void resample_column_plainly(const PixelView& from, const ResampleWeights& weights, uint32_t row,
                             uint8_t* to);
void pack_row_plainly(const uint8_t* from, uint32_t width, bool flip, uint8_t* out);

}  // namespace stoker
