// SPDX-License-Identifier: Apache-2.0
#include "image/jpeg_entropy.h"

#include <algorithm>

namespace stoker {
namespace {

/// The entry of a code whose value is not in it.
HuffmanTable::Entry partial(uint32_t length, uint8_t symbol, bool is_dc) {
  const uint32_t size = symbol & 15;
  const uint32_t zeros = symbol >> 4;
  uint32_t step = is_dc ? 0 : zeros + 1;
  // Zeros without a value behind them come by the 16; other runs of them have no meaning.
  if (!is_dc && size == 0 && zeros != 15) {
    step = zeros == 0 ? HuffmanTable::kEndOfBlock : HuffmanTable::kNoMeaning;
  }
  return length | HuffmanTable::kPartial | step << 8 | size << 16;
}

/// Fills in a code with whatever the bits behind it can be. Returns the end of its entries.
HuffmanTable::Entry* add_code(uint32_t length, uint8_t symbol, bool is_dc,
                              HuffmanTable::Entry* at) {
  const uint32_t rest = HuffmanTable::kBits - length;
  const HuffmanTable::Entry entry = partial(length, symbol, is_dc);
  const uint32_t size = entry >> 16;
  HuffmanTable::Entry* const end = at + (1U << rest);
  if (size > rest) {
    std::fill(at, end, entry);
    return end;
  }
  const HuffmanTable::Entry whole = (entry & 0xFF00) | (length + size);
  const uint32_t same = 1U << (rest - size);
  for (uint32_t bits = 0; bits < 1U << size; ++bits, at += same) {
    // Negative values are written as what they are more than the least.
    const bool is_negative = size > 0 && bits >> (size - 1) == 0;
    std::fill(at, at + same, whole | (is_negative ? bits - (1U << size) + 1 : bits) << 16);
  }
  return end;
}

}  // namespace

bool HuffmanTable::set(const JpegHeader::Codes& codes, bool dc) {
  is_dc = dc;
  std::copy_n(codes.symbols, codes.symbol_count, symbols.begin());
  Entry* at = entries.data();
  int32_t code = 0;
  uint32_t symbol = 0;
  for (uint32_t length = 1; length <= 16; ++length) {
    const uint32_t count = codes.count[length];
    // As in libjpeg, no code may be all ones.
    if (static_cast<uint32_t>(code) + count >= 1U << length) return false;
    to_symbol[length] = static_cast<int32_t>(symbol) - code;
    for (uint32_t i = 0; i < count; ++i, ++symbol, ++code) {
      const uint8_t meaning = symbols[symbol];
      if (dc && meaning > 15) return false;
      if (length <= kBits) at = add_code(length, meaning, dc, at);
    }
    last_code[length] = count > 0 ? code - 1 : -1;
    code <<= 1;
  }
  std::fill(at, entries.data() + entries.size(), kLonger);
  return true;
}

HuffmanTable::Entry HuffmanTable::find_long(uint64_t bits) const {
  for (uint32_t length = kBits + 1; length <= 16; ++length) {
    const auto code = static_cast<int32_t>(bits >> (64 - length));
    if (code > last_code[length]) continue;
    const auto number = static_cast<uint32_t>(code + to_symbol[length]);
    return partial(length, symbols[number % symbols.size()], is_dc);
  }
  return kPartial | kNoMeaning << 8;
}

}  // namespace stoker
