// SPDX-License-Identifier: Apache-2.0
#include "image/jpeg_header.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace stoker {
namespace {

// Markers.
constexpr uint8_t kFrameBaseline = 0xC0;
constexpr uint8_t kFrameExtended = 0xC1;
constexpr uint8_t kFrameProgressive = 0xC2;
constexpr uint8_t kHuffmanTables = 0xC4;
constexpr uint8_t kFrameArithmetic = 0xC9;
constexpr uint8_t kFrameArithmeticProgressive = 0xCA;
constexpr uint8_t kArithmeticConditioning = 0xCC;
constexpr uint8_t kEndOfImage = 0xD9;
constexpr uint8_t kStartOfScan = 0xDA;
constexpr uint8_t kQuantizationTables = 0xDB;
constexpr uint8_t kRestartInterval = 0xDD;
constexpr uint8_t kApp0 = 0xE0;
constexpr uint8_t kApp14 = 0xEE;
constexpr uint8_t kApp15 = 0xEF;
constexpr uint8_t kComment = 0xFE;

constexpr uint32_t kMostBlocks = 10;  // of an MCU, says the standard

/// What the header of a photo has said so far.
class HeaderParser {
 public:
  HeaderParser(Bytes photo, JpegHeader& header)
      : data_(reinterpret_cast<const uint8_t*>(photo.data())),
        size_(photo.size()),
        header_(header) {}

  DecodePath parse();

 private:
  /// A segment without its marker and length.
  struct Segment {
    const uint8_t* data;
    size_t size;
  };

  std::optional<DecodePath> take(uint8_t marker, Segment segment);
  bool quantization_tables(Segment segment);
  bool huffman_tables(Segment segment);
  std::optional<DecodePath> frame(Segment segment);
  bool scan(Segment segment);
  bool sampling_is_known() const;
  void find_colours();

  const uint8_t* data_;
  size_t size_;
  JpegHeader& header_;
  std::array<std::optional<std::array<uint16_t, 64>>, 4> quantization_;
  std::array<JpegHeader::Codes, 4> dc_, ac_;
  std::array<uint8_t, 3> quantization_of_{};  // by component
  bool jfif_ = false;
  std::optional<uint8_t> adobe_transform_;
};

uint32_t two_bytes(const uint8_t* at) { return uint32_t{at[0]} << 8 | at[1]; }

bool HeaderParser::quantization_tables(Segment segment) {
  size_t at = 0;
  while (at < segment.size) {
    const bool wide = segment.data[at] >> 4 != 0;
    const uint8_t number = segment.data[at] & 15;
    ++at;
    const size_t bytes = wide ? 128 : 64;
    if (number >= quantization_.size() || segment.size - at < bytes) return false;
    std::array<uint16_t, 64>& table = quantization_[number].emplace();
    for (size_t i = 0; i < 64; ++i) {
      const uint32_t value =
          wide ? two_bytes(segment.data + at + 2 * i) : uint32_t{segment.data[at + i]};
      table[kNaturalOrder[i]] = static_cast<uint16_t>(value);
    }
    at += bytes;
  }
  return true;
}

bool HeaderParser::huffman_tables(Segment segment) {
  size_t at = 0;
  while (at < segment.size) {
    if (segment.size - at < 17) return false;
    const uint8_t which = segment.data[at];
    if ((which & 0xEF) > 3) return false;
    JpegHeader::Codes& codes = (which & 0x10) != 0 ? ac_[which & 3] : dc_[which & 3];
    std::copy_n(segment.data + at + 1, 16, codes.count.begin() + 1);
    codes.symbol_count = 0;
    for (const uint8_t count : codes.count) codes.symbol_count += count;
    codes.symbols = segment.data + at + 17;
    at += 17;
    if (codes.symbol_count > 256 || segment.size - at < codes.symbol_count) return false;
    at += codes.symbol_count;
  }
  return true;
}

std::optional<DecodePath> HeaderParser::frame(Segment segment) {
  if (header_.component_count != 0 || segment.size < 6) return DecodePath::unusual;
  const uint8_t precision = segment.data[0];
  const uint8_t count = segment.data[5];
  header_.size = {two_bytes(segment.data + 1), two_bytes(segment.data + 3)};
  if (count == 4) return DecodePath::inks;
  if (precision != 8 || (count != 1 && count != 3) || segment.size != 6U + 3U * count ||
      header_.size.pixels() == 0) {
    return DecodePath::unusual;
  }
  header_.component_count = count;
  for (uint32_t i = 0; i < count; ++i) {
    const uint8_t* const from = segment.data + 6 + size_t{3} * i;
    JpegHeader::Component& component = header_.components[i];
    component.id = from[0];
    component.across = from[1] >> 4;
    component.down = from[1] & 15;
    quantization_of_[i] = from[2];
    if (from[2] > 3) return DecodePath::unusual;
  }
  // One component alone is not interleaved, whatever it says: an MCU is a block.
  if (count == 1) header_.components[0].across = header_.components[0].down = 1;
  if (!sampling_is_known()) return DecodePath::unusual;
  return std::nullopt;
}

/// Whether the first component has most samples and the others a whole part of them.
bool HeaderParser::sampling_is_known() const {
  const JpegHeader::Component& first = header_.components[0];
  uint32_t blocks = 0;
  for (uint32_t i = 0; i < header_.component_count; ++i) {
    const auto& [id, across, down, quantization, dc, ac] = header_.components[i];
    if (across < 1 || across > 4 || down < 1 || down > 4) return false;
    if (first.across % across != 0 || first.down % down != 0) return false;
    blocks += uint32_t{across} * down;
  }
  return blocks <= kMostBlocks;
}

bool HeaderParser::scan(Segment segment) {
  const uint32_t count = header_.component_count;
  if (count == 0 || segment.size != 4 + size_t{2} * count || segment.data[0] != count) return false;
  for (uint32_t i = 0; i < count; ++i) {
    JpegHeader::Component& component = header_.components[i];
    const uint8_t* const from = segment.data + 1 + size_t{2} * i;
    const uint8_t dc = from[1] >> 4;
    const uint8_t ac = from[1] & 15;
    if (from[0] != component.id || dc > 3 || ac > 3) return false;
    const auto& quantization = quantization_[quantization_of_[i]];
    if (!quantization || dc_[dc].symbols == nullptr || ac_[ac].symbols == nullptr) return false;
    component.quantization = *quantization;
    component.dc = dc_[dc];
    component.ac = ac_[ac];
  }
  const auto& [first, second, third] = header_.components;
  if (count == 3 && (first.id == second.id || second.id == third.id || first.id == third.id)) {
    return false;
  }
  const uint8_t* const rest = segment.data + 1 + size_t{2} * count;
  return rest[0] == 0 && rest[1] == 63 && rest[2] == 0;
}

/// As libjpeg does it.
void HeaderParser::find_colours() {
  const auto& components = header_.components;
  header_.is_rgb = false;
  if (header_.component_count != 3 || jfif_) return;
  header_.is_rgb = adobe_transform_ ? *adobe_transform_ == 0
                                    : components[0].id == 'R' && components[1].id == 'G' &&
                                          components[2].id == 'B';
}

std::optional<DecodePath> HeaderParser::take(uint8_t marker, Segment segment) {
  const std::string_view text(reinterpret_cast<const char*>(segment.data), segment.size);
  const auto unusual_unless = [](bool fine) {
    return fine ? std::nullopt : std::optional(DecodePath::unusual);
  };
  switch (marker) {
    case kFrameBaseline:
    case kFrameExtended:
      return frame(segment);
    case kFrameProgressive:
      return segment.size > 5 && segment.data[5] == 4 ? DecodePath::inks : DecodePath::progressive;
    case kFrameArithmetic:
    case kFrameArithmeticProgressive:
    case kArithmeticConditioning:
      return DecodePath::arithmetic;
    case kHuffmanTables:
      return unusual_unless(huffman_tables(segment));
    case kQuantizationTables:
      return unusual_unless(quantization_tables(segment));
    case kRestartInterval:
      if (segment.size == 2) header_.restart = two_bytes(segment.data);
      return unusual_unless(segment.size == 2);
    case kApp0:
      jfif_ = jfif_ || (segment.size >= 14 && text.starts_with(std::string_view("JFIF\0", 5)));
      return std::nullopt;
    case kApp14:
      if (segment.size >= 12 && text.starts_with("Adobe")) adobe_transform_ = segment.data[11];
      return std::nullopt;
    default:
      return unusual_unless((marker > kApp0 && marker <= kApp15) || marker == kComment);
  }
}

DecodePath HeaderParser::parse() {
  if (size_ < 2 || data_[0] != 0xFF || data_[1] != 0xD8) return DecodePath::unusual;
  size_t at = 2;
  for (;;) {
    // Any number of 0xFF may stand in front of a marker.
    const size_t begin = at;
    while (at < size_ && data_[at] == 0xFF) ++at;
    if (at == begin || size_ - at < 3) return DecodePath::unusual;
    const uint8_t marker = data_[at];
    const size_t length = two_bytes(data_ + at + 1);
    if (length < 2 || size_ - at - 1 < length) return DecodePath::unusual;
    const Segment segment{data_ + at + 3, length - 2};
    at += 1 + length;
    if (marker == kStartOfScan) {
      if (!scan(segment)) return DecodePath::unusual;
      find_colours();
      header_.entropy_begin = at;
      return DecodePath::from_start;
    }
    if (const std::optional<DecodePath> why = take(marker, segment)) return *why;
  }
}

}  // namespace

const std::array<uint8_t, 64> kNaturalOrder = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

DecodePath read_jpeg_header(Bytes photo, JpegHeader& header) {
  header = {};
  return HeaderParser(photo, header).parse();
}

bool has_jpeg_end(Bytes photo, size_t from) {
  for (size_t at = photo.size(); at >= from + 2; --at) {
    if (photo[at - 2] == std::byte{0xFF} && photo[at - 1] == std::byte{kEndOfImage}) return true;
  }
  return false;
}

}  // namespace stoker
