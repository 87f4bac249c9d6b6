// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "image/jpeg_entropy.h"
#include "image/row_index_view.h"

namespace stoker {

/// The entropy-coded bytes of a baseline JPEG, MCU by MCU. Keeps its memory; one per thread.
///
/// Nothing that lies in them, or in a row index, makes it read or write where it should not. It
/// answers false where they are not exactly what an encoder writes: whatever that is, libjpeg-turbo
/// decides it.
class EntropyDecoder {
 public:
  /// `photo` must stay. Returns false where there is no decoding it.
  bool open(Bytes photo, const JpegHeader& header);

  /// Makes room for the coefficients of so many MCUs of a row.
  void keep(uint32_t mcus);
  void clear();
  /// Of one of the rows of blocks that a component has in a row of MCUs, in groups: see
  /// blocks_per_group().
  const int16_t* coefficients(uint32_t component, uint32_t down) const {
    return coefficients_[component].data() + down * strides_[component];
  }

  /// Goes to MCU number `mcu`, counted from the photo's first, which begins there. What lies behind
  /// bit `end` is not looked at.
  bool seek(uint64_t mcu, const EntropyPlace& place, uint64_t end);
  bool rewind() { return seek(0, {}, entropy_.size() * 8); }

  /// The next MCUs; their coefficients become those from `first` on.
  bool decode(uint32_t first, uint32_t count);
  bool skip(uint64_t count);

  /// Whether the piece that is being decoded ends where the photo does.
  bool is_last_piece() const;
  /// Whether nothing but the end of the photo follows.
  bool is_at_end() const { return is_last_piece() && extraneous_bytes() == 0; }
  /// Whole bytes of the piece that were not decoded.
  uint64_t extraneous_bytes() const { return static_cast<uint64_t>(bits_left() / 8); }

  /// Where the next MCU begins. Takes a restart marker that comes before it. Nothing where that is
  /// not there.
  std::optional<EntropyPlace> place();

 private:
  bool advance(uint64_t count, uint32_t first, bool keep);
  int64_t bits_left() const;  // of the piece; negative: more were used than there are
  bool restart();
  void load(uint64_t byte, uint64_t end_byte);
  uint64_t byte_in_file(uint64_t unstuffed);

  const JpegHeader* header_ = nullptr;
  std::span<const uint8_t> entropy_;
  std::array<HuffmanTable, 3> dc_, ac_;  // by component; those of equal ones are not all in use
  std::vector<McuBlock> blocks_;
  std::array<std::vector<int16_t>, 3> coefficients_;  // by component
  std::array<size_t, 3> strides_{};                   // from one row of blocks to the next
  EntropyState state_;
  std::vector<uint8_t> buffer_;  // bytes up to piece_end_ without what is stuffed in
  uint64_t end_ = 0;             // bit
  uint64_t piece_end_ = 0;
  uint8_t marker_ = 0;          // that ends the piece
  uint64_t mcu_ = 0;            // the next
  uint64_t until_restart_ = 0;  // MCUs
  // Two places that are the same, in the piece and in the buffer.
  uint64_t known_in_file_ = 0, known_in_buffer_ = 0;
};

/// What is wrong with the entropy-coded bytes of a baseline JPEG of which libjpeg-turbo says
/// nothing, in words like its own; empty: nothing, or it is no baseline JPEG.
std::string find_overlooked_damage(Bytes photo);

}  // namespace stoker
