// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "image/jpeg_entropy.h"

namespace stoker {

// The steps of decoding a baseline JPEG, for whatever vectors the CPU has (chosen when first
// called). Every path gives the same bits, and they are those of libjpeg-turbo.

/// Blocks whose coefficients lie together: rows of each one's eight coefficients, as wide as a
/// vector. Of a group of n, the first row of all n comes first.
uint32_t blocks_per_group();

/// Several 0xFF in front of a zero: no encoder writes that, and libjpeg-turbo makes of it what it
/// will. Counts as a marker.
inline constexpr uint8_t kFillBytes = 0xFF;

/// Copies entropy-coded bytes without what is stuffed in, up to a marker. `to` has room for as many
/// bytes as `from` has and kUnstuffSlack more.
struct Unstuffed {
  size_t read = 0;  // up to the marker, which is behind it, or all
  size_t written = 0;
  uint8_t marker = 0;  // 0: none
};
inline constexpr size_t kUnstuffSlack = 64;
Unstuffed unstuff(std::span<const uint8_t> from, uint8_t* to);

/// Decodes MCUs. Where `keep` says so, their coefficients go to the blocks' rows, from MCU `first`
/// of them on; those that are 0 are not written. Returns false where the data is damaged, or cannot
/// be told from damaged; nothing is said about coefficients then.
bool decode_mcus(EntropyState& state, std::span<const McuBlock> blocks, uint32_t first,
                 uint32_t count, bool keep);

/// Samples of a row of blocks: eight rows of eight times `blocks` bytes, `stride` apart, rounded up
/// to whole groups. Returns false where coefficients are larger than any photo's: libjpeg-turbo has
/// a short cut that gives other samples then.
bool inverse_dct(const int16_t* coefficients, const int16_t* quantization, uint32_t blocks,
                 uint8_t* to, size_t stride);

// Upsampling as libjpeg-turbo's "fancy" one. `count` samples; that before the first and the one
// behind the last can be read. Writes, as all that follows, up to kRowSlack bytes too much.

inline constexpr size_t kRowSlack = 256;
void double_width(const uint8_t* from, uint32_t count, uint8_t* to);
/// `from` is the nearer row of the two.
void double_both(const uint8_t* from, const uint8_t* other, uint32_t count, uint8_t* to);
/// `bias` is 1 where the other row lies above, 2 where it lies below.
void double_height(const uint8_t* from, const uint8_t* other, uint32_t count, uint8_t bias,
                   uint8_t* to);

// Rows to pixels of four bytes.

void colours_from_ycc(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, uint32_t count,
                      uint8_t* to);
void colours_from_rgb(const uint8_t* red, const uint8_t* green, const uint8_t* blue, uint32_t count,
                      uint8_t* to);

// The same in plain C++: for the tests, and for CPUs without vectors. Coefficients of a block lie
// together there.

bool inverse_dct_plainly(const int16_t* coefficients, const int16_t* quantization, uint32_t blocks,
                         uint8_t* to, size_t stride);
void double_width_plainly(const uint8_t* from, uint32_t count, uint8_t* to);
void double_both_plainly(const uint8_t* from, const uint8_t* other, uint32_t count, uint8_t* to);
void double_height_plainly(const uint8_t* from, const uint8_t* other, uint32_t count, uint8_t bias,
                           uint8_t* to);
void colours_from_ycc_plainly(const uint8_t* y, const uint8_t* cb, const uint8_t* cr,
                              uint32_t count, uint8_t* to);
void colours_from_rgb_plainly(const uint8_t* red, const uint8_t* green, const uint8_t* blue,
                              uint32_t count, uint8_t* to);

}  // namespace stoker
