// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "image/jpeg_header.h"

namespace stoker {

/// A Huffman table of a JPEG, made for decoding: the next kBits bits say what comes.
struct HuffmanTable {
  static constexpr int kBits = 11;

  // An entry, from its lowest bit on: 6 bits how many bits to go on by, 2 bits a Kind, 8 bits by
  // how many coefficients to go on, 16 bits the value of the last of them, or its size where its
  // bits are not among the kBits.
  enum Kind : uint32_t { kWhole = 0, kEndOfBlock = 0x40, kValueFollows = 0x80, kLong = 0xC0 };
  static constexpr uint32_t kKindMask = 0xC0;

  std::array<uint32_t, 1U << kBits> entries{};
  // Of codes longer than kBits, by length: the last one, and what to add to one to find its symbol.
  std::array<int32_t, 17> last_code{}, to_symbol{};
  std::array<uint8_t, 256> symbols{};

  /// Returns false where the lengths are not those of a Huffman code, or a symbol is none.
  bool set(const JpegHeader::Codes& codes, bool is_dc);
};

/// Bits of entropy-coded bytes from which the stuffed zeros were taken out. Reads eight bytes
/// ahead.
struct BitReader {
  const uint8_t* next = nullptr;
  uint64_t bits = 0;  // the next ones, from the highest on
  int count = 0;      // of them that are there

  /// Bits that were used, counted from `begin`.
  int64_t used(const uint8_t* begin) const { return (next - begin) * 8 - count; }
};

/// One of the blocks that an MCU is made of.
struct McuBlock {
  const HuffmanTable* dc = nullptr;
  const HuffmanTable* ac = nullptr;
  uint32_t component = 0;
  uint32_t across = 1, column = 0;  // of the component's blocks in an MCU, and which of them
  int16_t* coefficients = nullptr;  // of its row of blocks
};

/// How far a decoder has come in the entropy-coded bytes.
struct EntropyState {
  BitReader reader;
  const uint8_t* end = nullptr;  // kSlack bytes behind it can be read
  std::array<int32_t, 3> predictors{};
  std::array<int32_t, 3> most_dc{};  // that a predictor may reach; larger ones are damage

  /// No MCU takes more bytes than this.
  static constexpr size_t kSlack = 4096;
};

}  // namespace stoker
