// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "image/jpeg_header.h"

namespace stoker {

/// A Huffman table of a JPEG, made for decoding: the next kBits bits say which code comes, and
/// mostly the value behind it as well.
struct HuffmanTable {
  static constexpr int kBits = 11;

  /// What to do about a code.
  ///
  ///   bits 0-5    bits to go on by: those of the code, and of the value if it is here
  ///   bit 7       kPartial: the value, or even the code, has more than kBits
  ///   bits 8-15   coefficients to go on by, kEndOfBlock or kNoMeaning
  ///   bits 16-31  the value; where it is not here, how many bits it has
  using Entry = uint32_t;
  static constexpr Entry kPartial = 0x80;
  static constexpr Entry kLonger = kPartial;  // with nothing else: the code is not here
  // Added to any coefficient's number these tell from where a run of zeros can lead.
  static constexpr uint32_t kNoMeaning = 64, kEndOfBlock = 128;

  std::array<Entry, 1U << kBits> entries{};
  // Of codes longer than kBits, by length: the last one, and what to add to find its symbol.
  std::array<int32_t, 17> last_code{}, to_symbol{};
  std::array<uint8_t, 256> symbols{};
  bool is_dc = false;

  /// Returns false where the lengths are not those of a Huffman code, or a symbol is none.
  bool set(const JpegHeader::Codes& codes, bool dc);
  /// The entry for a code longer than kBits, with which `bits` begin; kNoMeaning where there is
  /// none.
  Entry find_long(uint64_t bits) const;
};

/// Bits of entropy-coded bytes from which the stuffed zeros were taken out. Reads eight bytes
/// ahead.
struct BitReader {
  const uint8_t* next = nullptr;
  uint64_t bits = 0;   // the next ones, from the highest on
  uint32_t count = 0;  // of them that are there

  /// Bits that were used, counted from `begin`.
  int64_t used(const uint8_t* begin) const { return (next - begin) * 8 - int64_t{count}; }
};

/// One of the blocks that an MCU is made of.
struct McuBlock {
  const HuffmanTable* dc = nullptr;
  const HuffmanTable* ac = nullptr;
  uint32_t component = 0;
  uint32_t across = 1, column = 0, row = 0;  // of the component's blocks in an MCU, and which one
  int16_t* coefficients = nullptr;           // of its row of blocks
};

/// How far a decoder has come in the entropy-coded bytes.
struct EntropyState {
  BitReader reader;
  const uint8_t* end = nullptr;  // kSlack bytes behind it can be read
  std::array<int32_t, 3> predictors{};

  /// No MCU takes more bytes than this.
  static constexpr size_t kSlack = 4096;
};

}  // namespace stoker
