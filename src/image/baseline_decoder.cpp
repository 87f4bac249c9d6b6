// SPDX-License-Identifier: Apache-2.0
#include "image/baseline_decoder.h"

#include <algorithm>
#include <cstring>

#include "image/jpeg_kernels.h"

namespace stoker {

DecodePath BaselineDecoder::open(Bytes photo) {
  photo_ = photo;
  return read_jpeg_header(photo, header_);
}

bool BaselineDecoder::has_end() const { return has_jpeg_end(photo_, header_.entropy_begin); }

bool BaselineDecoder::fits(const RowIndexView& index, uint32_t crc) const {
  const RowIndexView::Header& header = index.header();
  return header.photo_crc == crc && header.photo_size == photo_.size() &&
         header.components == header_.component_count && header.rows == header_.mcu_rows() &&
         header.mcus_per_row == header_.mcus_per_row();
}

void BaselineDecoder::set_planes(const Region& region) {
  looks_up_and_down_ = false;
  bool looks_aside = false;
  for (uint32_t i = 0; i < header_.component_count; ++i) {
    const JpegHeader::Component& component = header_.components[i];
    Plane& plane = planes_[i];
    plane.wide = header_.across() / component.across;
    plane.high = header_.down() / component.down;
    // As libjpeg decides it. Very narrow planes are repeated, but not those that only lack height.
    const bool doubles = plane.wide <= 2 && plane.high <= 2 && plane.wide * plane.high > 1;
    plane.smooth = doubles && (plane.wide == 1 || header_.samples(component).width > 2);
    looks_aside = looks_aside || (plane.smooth && plane.wide == 2);
    looks_up_and_down_ = looks_up_and_down_ || (plane.smooth && plane.high == 2);
  }
  const uint32_t aside = looks_aside ? 1 : 0;
  const uint32_t beyond = looks_up_and_down_ ? 1 : 0;
  const uint32_t mcu_width = 8 * header_.across();
  const uint32_t mcu_height = 8 * header_.down();
  first_row_ = (region.top - std::min(region.top, beyond)) / mcu_height;
  end_row_ =
      (std::min(region.top + region.height + beyond, header_.size.height) - 1) / mcu_height + 1;
  first_mcu_ = (region.left - std::min(region.left, aside)) / mcu_width;
  end_mcu_ = (std::min(region.left + region.width + aside, header_.size.width) - 1) / mcu_width + 1;

  const uint32_t group = blocks_per_group();
  for (uint32_t i = 0; i < header_.component_count; ++i) {
    const JpegHeader::Component& component = header_.components[i];
    Plane& plane = planes_[i];
    const uint32_t blocks = (end_mcu_ - first_mcu_) * component.across;
    const size_t whole = round_up(blocks, group);
    plane.left = first_mcu_ * component.across * 8;
    plane.stride = kBefore + whole * 8 + kRowSlack;
    plane.samples.resize(plane.stride * (size_t{8} * component.down + 1));
    plane.upsampled.resize(size_t{region.width} + 2 * size_t{plane.wide} + kRowSlack);
  }
}

/// Decodes the coefficients of the MCUs of a row that are wanted.
bool BaselineDecoder::decode_row(uint32_t row, const RowIndexView* index) {
  const uint32_t per_row = header_.mcus_per_row();
  uint32_t at = 0;
  if (index != nullptr) {
    const RowIndexView::Header& known = index->header();
    const uint32_t every = known.every == 0 ? per_row : known.every;
    const uint32_t entry = first_mcu_ / every;
    const uint32_t end = (end_mcu_ + every - 1) / every;
    at = entry * every;
    const EntropyPlace stop = end < known.per_row() ? index->at(row, end) : index->at(row + 1, 0);
    if (!entropy_.seek(uint64_t{row} * per_row + at, index->at(row, entry), stop.bit)) return false;
  }
  entropy_.clear();
  if (!entropy_.skip(first_mcu_ - at) || !entropy_.decode(0, end_mcu_ - first_mcu_)) return false;
  const bool goes_on = index == nullptr && row + 1 < end_row_;
  return !goes_on || entropy_.skip(per_row - end_mcu_);
}

/// Turns coefficients into samples.
bool BaselineDecoder::transform() {
  bool usual = true;
  for (uint32_t i = 0; i < header_.component_count; ++i) {
    const JpegHeader::Component& component = header_.components[i];
    Plane& plane = planes_[i];
    const uint32_t blocks = (end_mcu_ - first_mcu_) * component.across;
    alignas(16) int16_t quantization[64];
    std::memcpy(quantization, component.quantization.data(), sizeof quantization);
    for (uint32_t down = 0; down < component.down; ++down) {
      usual = inverse_dct(entropy_.coefficients(i, down), quantization, blocks,
                          plane.at(static_cast<int32_t>(8 * down), plane.left), plane.stride) &&
              usual;
    }
    if (!plane.smooth || plane.wide == 1) continue;
    // Beside the photo's edges its own samples go on.
    const uint32_t width = header_.samples(component).width;
    const bool reaches_right = plane.left + 8 * blocks >= width;
    for (int32_t y = 0; y < 8 * component.down; ++y) {
      if (plane.left == 0) *plane.at(y, -1) = *plane.at(y, 0);
      if (reaches_right) *plane.at(y, width) = *plane.at(y, int64_t{width} - 1);
    }
  }
  return usual;
}

void BaselineDecoder::keep_last_rows() {
  for (uint32_t i = 0; i < header_.component_count; ++i) {
    Plane& plane = planes_[i];
    const size_t last = size_t{8} * header_.components[i].down * plane.stride;
    std::memcpy(plane.samples.data(), plane.samples.data() + last, plane.stride);
  }
}

/// The row of pixels behind the last one that can be made once this row of MCUs is there.
uint32_t BaselineDecoder::ready_behind(uint32_t row) const {
  const uint32_t end = (row + 1) * 8 * header_.down();
  if (end >= header_.size.height) return header_.size.height;
  return looks_up_and_down_ ? end - 1 : end;
}

/// A component's samples for row `y` of pixels, from the region's left column on. `row` is the row
/// of MCUs that was decoded last.
const uint8_t* BaselineDecoder::component_row(uint32_t number, const Region& region, uint32_t y,
                                              uint32_t row) {
  Plane& plane = planes_[number];
  const JpegHeader::Component& component = header_.components[number];
  const auto first = static_cast<int32_t>(row * 8 * component.down);
  const auto here = static_cast<int32_t>(y / plane.high);
  if (plane.wide * plane.high == 1) return plane.at(here - first, region.left);
  const uint32_t left = region.left / plane.wide;
  const uint32_t count = (region.left + region.width - 1) / plane.wide - left + 1;
  uint8_t* const to = plane.upsampled.data();
  const uint8_t* const near = plane.at(here - first, left);
  if (!plane.smooth) {
    for (uint32_t x = 0; x < count; ++x) std::memset(to + x * plane.wide, near[x], plane.wide);
    return to + region.left % plane.wide;
  }
  const bool below = plane.high == 2 && y % 2 == 1;
  const auto height = static_cast<int32_t>(header_.samples(component).height);
  const int32_t beside = std::clamp(below ? here + 1 : here - 1, 0, height - 1);
  if (plane.high == 1) {
    double_width(near, count, to);
  } else if (plane.wide == 1) {
    double_height(near, plane.at(beside - first, left), count, below ? 2 : 1, to);
  } else {
    double_both(near, plane.at(beside - first, left), count, to);
  }
  return to + region.left % plane.wide;
}

void BaselineDecoder::make_pixels(const Region& region, uint32_t y, uint32_t row, uint8_t* to) {
  const uint8_t* const first = component_row(0, region, y, row);
  if (header_.component_count == 1) return colours_from_rgb(first, first, first, region.width, to);
  const uint8_t* const second = component_row(1, region, y, row);
  const uint8_t* const third = component_row(2, region, y, row);
  if (header_.is_rgb) return colours_from_rgb(first, second, third, region.width, to);
  colours_from_ycc(first, second, third, region.width, to);
}

bool BaselineDecoder::decode(const Region& region, const RowIndexView* index, PixelRows& rows) {
  if (!entropy_.open(photo_, header_)) return false;
  set_planes(region);
  entropy_.keep(end_mcu_ - first_mcu_);
  if (index == nullptr) {
    // Without restart markers all is one piece: another marker in it is damage, wherever it is.
    if (!entropy_.rewind() || (header_.restart == 0 && !entropy_.is_last_piece())) return false;
    if (!entropy_.skip(uint64_t{first_row_} * header_.mcus_per_row())) return false;
  }
  uint32_t y = region.top;
  const uint32_t end = region.top + region.height;
  for (uint32_t row = first_row_; row < end_row_; ++row) {
    if (row > first_row_ && looks_up_and_down_) keep_last_rows();
    if (!decode_row(row, index) || !transform()) return false;
    for (const uint32_t ready = std::min(ready_behind(row), end); y < ready; ++y) {
      make_pixels(region, y, row, rows.next());
    }
  }
  // Codes that were damaged mostly end too early or too late. What has a row index ended properly
  // when it was made, and its checksum says that it is the same photo.
  if (index != nullptr || end_row_ < header_.mcu_rows()) return true;
  return entropy_.skip(header_.mcus_per_row() - end_mcu_) && entropy_.is_at_end();
}

}  // namespace stoker
