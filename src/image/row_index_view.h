// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"

namespace stoker {

/// Where decoding can begin in the entropy-coded bytes of a JPEG.
struct EntropyPlace {
  uint64_t bit = 0;  // counted from the first of them, with all that is stuffed in
  std::array<int16_t, 3> predictors{};
};

/// What a row index says. docs/formats/jpeg-row-index.md has the layout.
class RowIndexView {
 public:
  struct Header {
    uint8_t components = 0;
    uint16_t every = 0;  // MCUs from entry to entry within a row; 0: rows alone have them
    uint32_t photo_size = 0;
    uint32_t photo_crc = 0;
    uint16_t rows = 0, mcus_per_row = 0;

    /// Entries of a row, the first included.
    uint32_t per_row() const { return every == 0 ? 1 : (mcus_per_row + every - 1U) / every; }
  };

  /// Looks at a row index, which must stay; nothing where it is damaged.
  static std::optional<RowIndexView> open(Bytes bytes);

  const Header& header() const { return header_; }
  /// REQUIRES: entry < header().per_row(), and row < header().rows; or the end: (rows, 0).
  EntropyPlace at(uint32_t row, uint32_t entry) const;

 private:
  friend class RowIndexWriter;

  /// How many bits each part of an entry has.
  struct Widths {
    uint8_t row = 0, within = 0;
    std::array<uint8_t, 3> predictors{};

    uint32_t of_predictors() const {
      return uint32_t{predictors[0]} + predictors[1] + predictors[2];
    }
  };
  static uint64_t bits_of(const Header& header, const Widths& widths);

  uint64_t take(uint64_t& bit, uint32_t width) const;

  Header header_;
  Widths widths_;
  std::array<int16_t, 3> least_{};  // predictor, by component
  Bytes entries_;
};

/// Writes the row index of a photo.
class RowIndexWriter {
 public:
  /// `places`: those of all entries, row by row, and the end. Keeps pointing to them.
  RowIndexWriter(const RowIndexView::Header& header, const std::vector<EntropyPlace>& places);

  /// Bytes that it will have.
  uint64_t size() const;
  void write(std::vector<std::byte>& bytes) const;

 private:
  uint64_t row_begin(size_t place) const;

  RowIndexView::Header header_;
  const std::vector<EntropyPlace>& places_;
  RowIndexView::Widths widths_;
  std::array<int16_t, 3> least_{};  // predictor, by component
};

}  // namespace stoker
