// SPDX-License-Identifier: Apache-2.0
#include "image/row_index_view.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/crc32c.h"

namespace stoker {
namespace {

constexpr uint8_t kVersion = 0;
// Offsets in the header.
constexpr size_t kComponents = 1;
constexpr size_t kEvery = 2;
constexpr size_t kPhotoSize = 4;
constexpr size_t kPhotoCrc = 8;
constexpr size_t kRows = 12;
constexpr size_t kMcusPerRow = 14;
constexpr size_t kRowWidth = 16;
constexpr size_t kWithinWidth = 17;
constexpr size_t kPredictorWidths = 18;
constexpr size_t kLeast = 22;
constexpr size_t kEntries = 28;
constexpr size_t kCrcSize = 4;

constexpr uint32_t kMostPositionBits = 40;
constexpr uint32_t kMostPredictorBits = 16;

uint8_t width_of(uint64_t value) { return static_cast<uint8_t>(std::bit_width(value)); }

/// Appends bits, the lowest first.
class BitWriter {
 public:
  explicit BitWriter(std::vector<std::byte>& bytes) : bytes_(bytes) {}
  ~BitWriter() {
    if (count_ > 0) bytes_.push_back(static_cast<std::byte>(bits_));
  }
  BitWriter(const BitWriter&) = delete;
  BitWriter& operator=(const BitWriter&) = delete;

  /// At most 56 at once.
  void add(uint64_t value, uint32_t width) {
    bits_ |= value << count_;
    count_ += width;
    for (; count_ >= 8; count_ -= 8, bits_ >>= 8) bytes_.push_back(static_cast<std::byte>(bits_));
  }

 private:
  std::vector<std::byte>& bytes_;
  uint64_t bits_ = 0;
  uint32_t count_ = 0;
};

}  // namespace

uint64_t RowIndexView::bits_of(const Header& header, const Widths& widths) {
  const uint64_t rows = header.rows;
  return (rows + 1) * (widths.row + widths.of_predictors()) +
         rows * (header.per_row() - 1) * (widths.within + widths.of_predictors());
}

std::optional<RowIndexView> RowIndexView::open(Bytes bytes) {
  if (bytes.size() < kEntries + kCrcSize) return std::nullopt;
  const std::byte* const at = bytes.data();
  const Bytes checked = bytes.first(bytes.size() - kCrcSize);
  if (load<uint32_t>(at + checked.size()) != crc32c(checked)) return std::nullopt;
  RowIndexView view;
  view.header_ = {static_cast<uint8_t>(at[kComponents]),
                  load<uint16_t>(at + kEvery),
                  load<uint32_t>(at + kPhotoSize),
                  load<uint32_t>(at + kPhotoCrc),
                  load<uint16_t>(at + kRows),
                  load<uint16_t>(at + kMcusPerRow)};
  const Header& header = view.header_;
  view.widths_ = {static_cast<uint8_t>(at[kRowWidth]), static_cast<uint8_t>(at[kWithinWidth]), {}};
  bool fine = at[0] == std::byte{kVersion} && header.rows > 0 && header.mcus_per_row > 0 &&
              (header.components == 1 || header.components == 3) &&
              view.widths_.row <= kMostPositionBits && view.widths_.within <= kMostPositionBits;
  for (size_t i = 0; i < 3; ++i) {
    view.widths_.predictors[i] = static_cast<uint8_t>(at[kPredictorWidths + i]);
    view.least_[i] = load<int16_t>(at + kLeast + 2 * i);
    fine = fine && view.widths_.predictors[i] <= kMostPredictorBits;
  }
  view.entries_ = checked.subspan(kEntries);
  if (!fine || (bits_of(header, view.widths_) + 7) / 8 != view.entries_.size()) {
    return std::nullopt;
  }
  return view;
}

uint64_t RowIndexView::take(uint64_t& bit, uint32_t width) const {
  uint64_t word = 0;
  const uint64_t first = bit / 8;
  std::memcpy(&word, entries_.data() + first, std::min<uint64_t>(8, entries_.size() - first));
  const uint64_t value = word >> (bit % 8) & ((uint64_t{1} << width) - 1);
  bit += width;
  return value;
}

EntropyPlace RowIndexView::at(uint32_t row, uint32_t entry) const {
  EntropyPlace place;
  const uint32_t predictors = widths_.of_predictors();
  const uint64_t row_size = widths_.row + predictors;
  uint64_t bit = row * row_size;
  place.bit = take(bit, widths_.row);
  if (entry > 0) {
    const uint64_t number = uint64_t{row} * (header_.per_row() - 1) + entry - 1;
    bit = (header_.rows + 1) * row_size + number * (widths_.within + predictors);
    place.bit += take(bit, widths_.within);
  }
  for (size_t i = 0; i < 3; ++i) {
    place.predictors[i] =
        static_cast<int16_t>(least_[i] + static_cast<int32_t>(take(bit, widths_.predictors[i])));
  }
  return place;
}

RowIndexWriter::RowIndexWriter(const RowIndexView::Header& header,
                               const std::vector<EntropyPlace>& places)
    : header_(header), places_(places) {
  widths_.row = width_of(places.back().bit);
  for (size_t i = 0; i < 3; ++i) {
    int32_t least = 0;
    int32_t most = 0;
    for (const EntropyPlace& place : places) {
      least = std::min<int32_t>(least, place.predictors[i]);
      most = std::max<int32_t>(most, place.predictors[i]);
    }
    least_[i] = static_cast<int16_t>(least);
    widths_.predictors[i] = width_of(static_cast<uint64_t>(most - least));
  }
  uint64_t farthest = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    farthest = std::max(farthest, places[i].bit - row_begin(i));
  }
  widths_.within = width_of(farthest);
}

uint64_t RowIndexWriter::row_begin(size_t place) const {
  return places_[place - place % header_.per_row()].bit;
}

uint64_t RowIndexWriter::size() const {
  return kEntries + (RowIndexView::bits_of(header_, widths_) + 7) / 8 + kCrcSize;
}

void RowIndexWriter::write(std::vector<std::byte>& bytes) const {
  bytes.assign(kEntries, {});
  bytes[0] = std::byte{kVersion};
  bytes[kComponents] = std::byte{header_.components};
  store(bytes.data() + kEvery, header_.every);
  store(bytes.data() + kPhotoSize, header_.photo_size);
  store(bytes.data() + kPhotoCrc, header_.photo_crc);
  store(bytes.data() + kRows, header_.rows);
  store(bytes.data() + kMcusPerRow, header_.mcus_per_row);
  bytes[kRowWidth] = std::byte{widths_.row};
  bytes[kWithinWidth] = std::byte{widths_.within};
  for (size_t i = 0; i < 3; ++i) {
    bytes[kPredictorWidths + i] = std::byte{widths_.predictors[i]};
    store(bytes.data() + kLeast + 2 * i, least_[i]);
  }
  {
    BitWriter writer(bytes);
    const auto add = [&](const EntropyPlace& place, uint64_t from, uint32_t width) {
      writer.add(place.bit - from, width);
      for (size_t i = 0; i < 3; ++i) {
        writer.add(static_cast<uint64_t>(place.predictors[i] - least_[i]), widths_.predictors[i]);
      }
    };
    const uint32_t per_row = header_.per_row();
    for (size_t i = 0; i < places_.size(); i += per_row) add(places_[i], 0, widths_.row);
    for (size_t i = 0; i < places_.size(); ++i) {
      if (i % per_row != 0) add(places_[i], row_begin(i), widths_.within);
    }
  }
  const uint32_t crc = crc32c(bytes);
  bytes.resize(bytes.size() + kCrcSize);
  store(bytes.data() + bytes.size() - kCrcSize, crc);
}

}  // namespace stoker
