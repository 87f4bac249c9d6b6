// SPDX-License-Identifier: Apache-2.0
#include "image/entropy_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "image/jpeg_kernels.h"

namespace stoker {
namespace {

constexpr uint8_t kFirstRestart = 0xD0;
constexpr uint8_t kEndOfImage = 0xD9;
/// Zeros behind the last byte, so that what is read there does not depend on what was there.
constexpr size_t kZeros = 64;
static_assert(kZeros <= EntropyState::kSlack && kUnstuffSlack <= EntropyState::kSlack);

bool same(const JpegHeader::Codes& a, const JpegHeader::Codes& b) {
  return a.count == b.count &&
         std::equal(a.symbols, a.symbols + a.symbol_count, b.symbols, b.symbols + b.symbol_count);
}

}  // namespace

bool EntropyDecoder::open(Bytes photo, const JpegHeader& header) {
  header_ = &header;
  const Bytes entropy = photo.subspan(header.entropy_begin);
  entropy_ = {reinterpret_cast<const uint8_t*>(entropy.data()), entropy.size()};
  blocks_.clear();
  std::array<const HuffmanTable*, 3> dc{};
  std::array<const HuffmanTable*, 3> ac{};
  for (uint32_t i = 0; i < header.component_count; ++i) {
    const JpegHeader::Component& component = header.components[i];
    const auto table = [&](bool is_dc, std::array<HuffmanTable, 3>& tables,
                           std::array<const HuffmanTable*, 3>& used) {
      const auto codes = [&](uint32_t n) -> const JpegHeader::Codes& {
        return is_dc ? header.components[n].dc : header.components[n].ac;
      };
      for (uint32_t earlier = 0; earlier < i; ++earlier) {
        if (same(codes(i), codes(earlier))) {
          used[i] = used[earlier];
          return true;
        }
      }
      used[i] = &tables[i];
      return tables[i].set(codes(i), is_dc);
    };
    if (!table(true, dc_, dc) || !table(false, ac_, ac)) return false;
    for (uint32_t block = 0; block < uint32_t{component.across} * component.down; ++block) {
      blocks_.push_back({dc[i], ac[i], i, component.across, block % component.across,
                         block / component.across, nullptr});
    }
  }
  return true;
}

void EntropyDecoder::keep(uint32_t mcus) {
  const uint32_t group = blocks_per_group();
  for (uint32_t i = 0; i < header_->component_count; ++i) {
    const JpegHeader::Component& component = header_->components[i];
    strides_[i] = round_up(uint64_t{mcus} * component.across, group) * 64;
    coefficients_[i].resize(strides_[i] * component.down);
  }
  for (McuBlock& block : blocks_) {
    block.coefficients =
        coefficients_[block.component].data() + block.row * strides_[block.component];
  }
}

void EntropyDecoder::clear() {
  for (uint32_t i = 0; i < header_->component_count; ++i) {
    std::memset(coefficients_[i].data(), 0, coefficients_[i].size() * sizeof(int16_t));
  }
}

void EntropyDecoder::load(uint64_t byte, uint64_t end_byte) {
  const auto piece = entropy_.subspan(byte, end_byte - byte);
  if (buffer_.size() < piece.size() + EntropyState::kSlack) {
    buffer_.resize(piece.size() + EntropyState::kSlack);
  }
  const Unstuffed got = unstuff(piece, buffer_.data());
  std::memset(buffer_.data() + got.written, 0, kZeros);
  piece_end_ = byte + got.read;
  marker_ = got.marker;
  state_.end = buffer_.data() + got.written;
  known_in_file_ = byte;
  known_in_buffer_ = 0;
}

bool EntropyDecoder::seek(uint64_t mcu, const EntropyPlace& place, uint64_t end) {
  const uint64_t byte = place.bit / 8;
  const uint64_t size = entropy_.size();
  // The byte in which the end lies counts, and one that is stuffed in behind it.
  const uint64_t end_byte = std::min(end / 8 + 2, size);
  end_ = end;
  if (byte > end_byte) return false;
  load(byte, end_byte);
  for (size_t i = 0; i < 3; ++i) state_.predictors[i] = place.predictors[i];
  BitReader& reader = state_.reader;
  const auto used = static_cast<uint32_t>(place.bit % 8);
  uint64_t first;
  std::memcpy(&first, buffer_.data(), sizeof first);
  // As after a refill: seven bytes are taken, of the eighth the bits lie there already.
  reader = {buffer_.data() + 7, __builtin_bswap64(first) << used, 56 - used};
  mcu_ = mcu;
  until_restart_ = header_->restart == 0 ? ~uint64_t{0} : header_->restart - mcu % header_->restart;
  return true;
}

int64_t EntropyDecoder::bits_left() const {
  return (state_.end - buffer_.data()) * 8 - state_.reader.used(buffer_.data());
}

bool EntropyDecoder::is_last_piece() const { return marker_ == kEndOfImage; }

bool EntropyDecoder::restart() {
  const auto expected = static_cast<uint8_t>(kFirstRestart + (mcu_ / header_->restart + 7) % 8);
  if (bits_left() >= 8 || marker_ != expected) return false;
  uint64_t byte = piece_end_;
  while (entropy_[byte] == 0xFF) ++byte;
  return seek(mcu_, {(byte + 1) * 8, {}}, end_);
}

bool EntropyDecoder::advance(uint64_t count, uint32_t first, bool keep) {
  while (count > 0) {
    if (until_restart_ == 0 && !restart()) return false;
    const auto now = static_cast<uint32_t>(std::min({count, until_restart_, uint64_t{1} << 30}));
    if (!decode_mcus(state_, blocks_, first, now, keep)) return false;
    if (bits_left() < 0) return false;
    count -= now;
    first += now;
    mcu_ += now;
    if (header_->restart != 0) until_restart_ -= now;
  }
  return true;
}

bool EntropyDecoder::decode(uint32_t first, uint32_t count) { return advance(count, first, true); }
bool EntropyDecoder::skip(uint64_t count) { return advance(count, 0, false); }

uint64_t EntropyDecoder::byte_in_file(uint64_t unstuffed) {
  const uint8_t* const bytes = entropy_.data();
  while (known_in_buffer_ < unstuffed) {
    const uint64_t rest = unstuffed - known_in_buffer_;
    const uint64_t most = std::min<uint64_t>(rest, entropy_.size() - known_in_file_);
    const auto* stuffed =
        static_cast<const uint8_t*>(std::memchr(bytes + known_in_file_, 0xFF, most));
    if (stuffed == nullptr) {
      known_in_file_ += rest;
      known_in_buffer_ += rest;
      break;
    }
    const auto run = static_cast<uint64_t>(stuffed - bytes) - known_in_file_;
    known_in_buffer_ += run + 1;
    known_in_file_ += run + 2;  // the zero behind it, too
  }
  return known_in_file_;
}

std::string find_overlooked_damage(Bytes photo) {
  JpegHeader header;
  if (read_jpeg_header(photo, header) != DecodePath::from_start) return "";
  const auto decoder = std::make_unique<EntropyDecoder>();
  if (!decoder->open(photo, header) || !decoder->rewind()) return "";
  // A run of zeros out of its block, say, or a value out of range: libjpeg-turbo goes on.
  const uint64_t all = uint64_t{header.mcus_per_row()} * header.mcu_rows();
  if (!decoder->skip(all)) return "Corrupt JPEG data: invalid codes";
  // It does not count those that it has read ahead.
  const uint64_t bytes = decoder->is_last_piece() ? decoder->extraneous_bytes() : 0;
  if (bytes == 0) return "";
  return fmt::format("Corrupt JPEG data: {} extraneous bytes before marker 0xd9", bytes);
}

std::optional<EntropyPlace> EntropyDecoder::place() {
  const uint64_t all = uint64_t{header_->mcus_per_row()} * header_->mcu_rows();
  if (until_restart_ == 0 && mcu_ < all && !restart()) return std::nullopt;
  const auto used = static_cast<uint64_t>(state_.reader.used(buffer_.data()));
  EntropyPlace place{byte_in_file(used / 8) * 8 + used % 8, {}};
  for (size_t i = 0; i < 3; ++i) {
    place.predictors[i] = static_cast<int16_t>(state_.predictors[i]);
  }
  return place;
}

}  // namespace stoker
