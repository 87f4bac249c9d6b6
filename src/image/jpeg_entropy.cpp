// SPDX-License-Identifier: Apache-2.0
#include "image/jpeg_entropy.h"

#include <algorithm>

namespace stoker {
namespace {

/// Coefficients to go on by. Zeros without a value behind them come by the 16; other runs of them
/// have no meaning, and lead out of the block.
uint32_t step_of(uint8_t symbol) {
  const uint32_t run = symbol >> 4;
  return (symbol & 15) == 0 && run != 15 ? 64 : run + 1;
}

/// Entries of a code of `length` bits with what the bits behind it can be. Returns their end.
uint32_t* add_code(uint32_t length, uint8_t symbol, bool is_dc, uint32_t* at) {
  const uint32_t rest = HuffmanTable::kBits - length;
  const uint32_t size = is_dc ? symbol : symbol & 15U;
  const uint32_t step = is_dc ? 0 : step_of(symbol);
  uint32_t* const end = at + (1U << rest);
  if (!is_dc && symbol == 0) {
    std::fill(at, end, length | HuffmanTable::kEndOfBlock);
  } else if (size > rest) {
    std::fill(at, end, length | HuffmanTable::kValueFollows | step << 8 | size << 16);
  } else {
    const uint32_t same = 1U << (rest - size);
    for (uint32_t bits = 0; bits < 1U << size; ++bits, at += same) {
      const bool negative = size > 0 && bits >> (size - 1) == 0;
      const uint32_t value = negative ? bits - (1U << size) + 1 : bits;
      std::fill(at, at + same, (length + size) | step << 8 | value << 16);
    }
  }
  return end;
}

}  // namespace

bool HuffmanTable::set(const JpegHeader::Codes& codes, bool is_dc) {
  std::copy_n(codes.symbols, codes.symbol_count, symbols.begin());
  uint32_t* at = entries.data();
  int32_t code = 0;
  uint32_t symbol = 0;
  for (uint32_t length = 1; length <= 16; ++length) {
    const uint32_t count = codes.count[length];
    // As in libjpeg, no code may be all ones.
    if (static_cast<uint32_t>(code) + count >= 1U << length) return false;
    to_symbol[length] = static_cast<int32_t>(symbol) - code;
    for (uint32_t i = 0; i < count; ++i, ++symbol, ++code) {
      const uint8_t meaning = symbols[symbol];
      if (is_dc && meaning > 15) return false;
      if (length <= kBits) at = add_code(length, meaning, is_dc, at);
    }
    last_code[length] = count > 0 ? code - 1 : -1;
    code <<= 1;
  }
  std::fill(at, entries.data() + entries.size(), static_cast<uint32_t>(kLong));
  return true;
}

}  // namespace stoker
