// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "image/jpeg_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "image/entropy_kernels.cpp"
#include <hwy/foreach_target.h>
// Behind it: this file is compiled once for each kind of vectors.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Blocks that fill a vector: see blocks_per_group().
constexpr uint32_t kGroup = HWY_LANES(int16_t) >= 8 ? HWY_LANES(int16_t) / 8 : 1;

uint32_t group() { return kGroup; }

// Whether what is decoded is compared with what can be; the benchmark measures what that costs.
#ifdef STOKER_UNCHECKED
constexpr bool kChecks = false;
#else
constexpr bool kChecks = true;
#endif

// --- Entropy-coded bytes
// ---------------------------------------------------------------------------

Unstuffed unstuff(std::span<const uint8_t> source, uint8_t* const to) {
  const hn::CappedTag<uint8_t, kUnstuffSlack> d8;
  const auto ones = hn::Set(d8, 0xFF);
  const uint8_t* const begin = source.data();
  const uint8_t* const end = begin + source.size();
  const uint8_t* from = begin;
  uint8_t* out = to;
  for (;;) {
    while (static_cast<size_t>(end - from) >= hn::Lanes(d8)) {
      const auto bytes = hn::LoadU(d8, from);
      hn::StoreU(bytes, d8, out);
      const intptr_t found = hn::FindFirstTrue(d8, hn::Eq(bytes, ones));
      const auto run = found < 0 ? static_cast<intptr_t>(hn::Lanes(d8)) : found;
      from += run;
      out += run;
      if (found >= 0) break;
    }
    while (from != end && *from != 0xFF) *out++ = *from++;
    // One with a zero behind it is a byte of data. More of them may come before a marker.
    const uint8_t* next = from;
    while (next != end && *next == 0xFF) ++next;
    const bool is_data = next != end && *next == 0 && next - from == 1;
    if (!is_data) {
      const uint8_t marker = next == end ? 0 : *next == 0 ? kFillBytes : *next;
      return {static_cast<size_t>(from - begin), static_cast<size_t>(out - to), marker};
    }
    *out++ = 0xFF;
    from = next + 1;
  }
}

/// At least 56 bits, by taking whole bytes.
HWY_INLINE void refill(BitReader& reader) {
  uint64_t ahead;
  std::memcpy(&ahead, reader.next, sizeof ahead);
  reader.bits |= __builtin_bswap64(ahead) >> reader.count;
  reader.next += (63 - reader.count) >> 3;
  reader.count |= 56;
}

/// By value, so that a reader can stay in registers.
HWY_NOINLINE HuffmanTable::Entry find_long(const HuffmanTable& table, uint64_t bits) {
  return table.find_long(bits);
}

/// Puts the value that follows a code into its entry. One without a code leads out of the block.
HWY_INLINE HuffmanTable::Entry complete(const HuffmanTable& table, HuffmanTable::Entry entry,
                                        uint64_t bits) {
  if (HWY_UNLIKELY(entry == HuffmanTable::kLonger)) entry = find_long(table, bits);
  const uint32_t length = entry & 63;
  const uint32_t size = entry >> 16;
  const uint64_t behind = bits << length;
  // As if one more bit came first, which is not there: so that no bits are a value, too.
  const uint32_t least = 1 - (1U << size);
  const uint32_t value = static_cast<uint32_t>(behind >> 1 >> (63 - size)) +
                         (static_cast<int64_t>(behind) < 0 ? 0 : least);
  return (entry & 0xFF00) | (length + size) | value << 16;
}

/// The next code and its value. Without kRefill the bits must be those that are left behind one
/// with: at least 25, enough for what a table knows as a whole.
template <bool kRefill>
HWY_INLINE HuffmanTable::Entry take(const HuffmanTable& table, BitReader& reader) {
  HuffmanTable::Entry entry = table.entries[reader.bits >> (64 - HuffmanTable::kBits)];
  if (kRefill) refill(reader);
  if (HWY_UNLIKELY((entry & HuffmanTable::kPartial) != 0)) {
    if (!kRefill) refill(reader);
    entry = complete(table, entry, reader.bits);
  }
  reader.bits <<= entry & 63;
  reader.count -= entry & 63;
  return entry;
}

/// Coefficients of a block but the first, each at its place. Returns whether they can be those of
/// a block. What is no coefficient is written to the place of the first.
HWY_INLINE bool take_ac(const HuffmanTable& table, BitReader& reader, const uint8_t* place,
                        int16_t* block) {
  uint32_t at = 0;
  const auto put = [&](HuffmanTable::Entry entry) {
    at += entry >> 8 & 0xFF;
    block[place[at]] = static_cast<int16_t>(entry >> 16);
  };
  // Two at a time: refilling takes as long as finding a code. The first coefficient had refilled.
  do {
    put(take<false>(table, reader));
    if (at >= 63) break;
    put(take<true>(table, reader));
  } while (at < 63);
  return !kChecks || at == 63 || at >= HuffmanTable::kEndOfBlock;
}

/// Where the n-th coefficient of a block lies, counted from the block's first; what is none, there.
struct PlaceInGroup {
  uint8_t at[HuffmanTable::kEndOfBlock + 64] = {};

  PlaceInGroup() {
    for (size_t i = 0; i < 64; ++i) {
      const uint32_t natural = kNaturalOrder[i];
      at[i] = static_cast<uint8_t>(natural / 8 * 8 * kGroup + natural % 8);
    }
  }
};

template <bool kKeep>
bool decode(EntropyState& state, std::span<const McuBlock> blocks, uint32_t first, uint32_t count) {
  static const PlaceInGroup place;
  BitReader reader = state.reader;
  int16_t unwanted[64 * kGroup];
  for (uint32_t mcu = first; mcu < first + count; ++mcu) {
    for (const McuBlock& block : blocks) {
      int16_t* to = unwanted;
      if (kKeep) {
        const uint32_t number = mcu * block.across + block.column;
        to = block.coefficients + size_t{number / kGroup} * 64 * kGroup + number % kGroup * 8;
      }
      int32_t& predictor = state.predictors[block.component];
      const HuffmanTable::Entry difference = take<true>(*block.dc, reader);
      predictor += static_cast<int16_t>(difference >> 16);
      const bool is_large = predictor != static_cast<int16_t>(predictor);
      if (HWY_UNLIKELY(kChecks && ((difference & 0xFF00) != 0 || is_large))) return false;
      if (HWY_UNLIKELY(!take_ac(*block.ac, reader, place.at, to))) return false;
      *to = static_cast<int16_t>(predictor);
    }
    // What is read behind the end is thrown away here, once for all blocks of an MCU.
    if (HWY_UNLIKELY(kChecks && reader.next > state.end + sizeof(uint64_t))) return false;
  }
  state.reader = reader;
  return true;
}

bool decode_all(EntropyState& state, std::span<const McuBlock> blocks, uint32_t first,
                uint32_t count, bool keep) {
  return keep ? decode<true>(state, blocks, first, count)
              : decode<false>(state, blocks, first, count);
}

}  // namespace stoker::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {
namespace {

HWY_EXPORT(group);
HWY_EXPORT(unstuff);
HWY_EXPORT(decode_all);

}  // namespace

uint32_t blocks_per_group() { return HWY_DYNAMIC_DISPATCH(group)(); }

Unstuffed unstuff(std::span<const uint8_t> from, uint8_t* to) {
  return HWY_DYNAMIC_DISPATCH(unstuff)(from, to);
}

bool decode_mcus(EntropyState& state, std::span<const McuBlock> blocks, uint32_t first,
                 uint32_t count, bool keep) {
  return HWY_DYNAMIC_DISPATCH(decode_all)(state, blocks, first, count, keep);
}

}  // namespace stoker
#endif
