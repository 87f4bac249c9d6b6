// SPDX-License-Identifier: Apache-2.0
#include "image/row_index.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "image/entropy_decoder.h"
#include "image/jpeg.h"
#include "image/jpeg_header.h"
#include "image/jpeg_kernels.h"
#include "image/vectors.h"

namespace stoker {

namespace {

/// Of a row index whose entries nobody has asked for in particular: the most that it may take of
/// the photo's bytes, and the fewest MCUs from entry to entry.
constexpr uint64_t kMostOfPhoto = 200;  // one part in so many
constexpr uint32_t kFinest = 8;
/// libjpeg-turbo keeps all coefficients of a photo in memory, 6 bytes a pixel.
constexpr uint64_t kMostPixels = 64'000'000;

/// Leaves out every second entry of each row.
void thin_out(uint32_t per_row, std::vector<EntropyPlace>& places) {
  size_t kept = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    if (i % per_row % 2 == 0) places[kept++] = places[i];
  }
  places.resize(kept);
}

}  // namespace

struct RowIndexer::State {
  uint32_t every = 0;
  JpegHeader header;
  EntropyDecoder entropy;
  JpegDecoder libjpeg;
  std::vector<EntropyPlace> places;

  bool find_places(Bytes photo);
  bool is_libjpegs_row(uint32_t row);
};

/// Whether libjpeg-turbo has the same coefficients in a row of MCUs, those blocks left out that lie
/// beside or below the photo.
bool RowIndexer::State::is_libjpegs_row(uint32_t row) {
  const uint32_t group = blocks_per_group();
  for (uint32_t i = 0; i < header.component_count; ++i) {
    const JpegHeader::Component& component = header.components[i];
    const Size samples = header.samples(component);
    const uint32_t wanted = (samples.width + 7) / 8;
    for (uint32_t down = 0; down < component.down; ++down) {
      const uint32_t block_row = row * component.down + down;
      if (block_row * 8 >= samples.height) break;
      const int16_t* theirs = libjpeg.coefficients(i, block_row);
      if (theirs == nullptr) return false;
      const int16_t* const ours = entropy.coefficients(i, down);
      for (uint32_t block = 0; block < wanted; ++block) {
        const int16_t* at = ours + size_t{block / group} * 64 * group + block % group * 8;
        for (uint32_t y = 0; y < 8; ++y, at += size_t{8} * group, theirs += 8) {
          if (std::memcmp(at, theirs, 8 * sizeof(int16_t)) != 0) return false;
        }
      }
    }
  }
  return true;
}

/// Fills `places`, and compares what is decoded on the way. Returns false where it differs, or
/// where the data is not what an encoder writes.
bool RowIndexer::State::find_places(Bytes photo) {
  if (!entropy.open(photo, header) || !entropy.rewind()) return false;
  const uint32_t per_row = header.mcus_per_row();
  entropy.keep(per_row);
  const uint32_t step = every == 0 ? kFinest : every;
  places.clear();
  for (uint32_t row = 0; row < header.mcu_rows(); ++row) {
    entropy.clear();
    for (uint32_t mcu = 0; mcu < per_row; mcu += step) {
      const std::optional<EntropyPlace> place = entropy.place();
      if (!place || !entropy.decode(mcu, std::min(step, per_row - mcu))) return false;
      places.push_back(*place);
    }
    if (!is_libjpegs_row(row)) return false;
  }
  const std::optional<EntropyPlace> end = entropy.place();
  if (!end || !entropy.is_at_end()) return false;
  places.push_back({end->bit, {}});
  return true;
}

RowIndexer::RowIndexer(uint32_t every) : state_(std::make_unique<State>()) {
  choose_vectors();
  state_->every = std::min(every, uint32_t{UINT16_MAX});  // no row has more MCUs
}
RowIndexer::~RowIndexer() = default;

DecodePath RowIndexer::make(Bytes photo, uint32_t crc) {
  bytes_.clear();
  State& state = *state_;
  if (!is_jpeg(photo)) return DecodePath::other;
  const DecodePath path = read_jpeg_header(photo, state.header);
  if (path != DecodePath::from_start) return path;
  const JpegHeader& header = state.header;
  if (photo.size() > UINT32_MAX || header.size.pixels() > kMostPixels) return DecodePath::unusual;
  if (!has_jpeg_end(photo, header.entropy_begin)) return DecodePath::damaged;
  try {
    (void)state.libjpeg.open(photo);
  } catch (const Error&) {
    return DecodePath::damaged;
  }
  if (!state.libjpeg.read_coefficients()) return DecodePath::damaged;
  const bool is_same = state.find_places(photo);
  state.libjpeg.drop_coefficients();
  if (!is_same) return DecodePath::differs;
  RowIndexView::Header known{static_cast<uint8_t>(header.component_count),
                             static_cast<uint16_t>(state.every == 0 ? kFinest : state.every),
                             static_cast<uint32_t>(photo.size()),
                             crc,
                             static_cast<uint16_t>(header.mcu_rows()),
                             static_cast<uint16_t>(header.mcus_per_row())};
  while (state.every == 0 && known.per_row() > 1 &&
         RowIndexWriter(known, state.places).size() > photo.size() / kMostOfPhoto) {
    thin_out(known.per_row(), state.places);
    known.every *= 2;
  }
  RowIndexWriter(known, state.places).write(bytes_);
  return DecodePath::indexed;
}

}  // namespace stoker
