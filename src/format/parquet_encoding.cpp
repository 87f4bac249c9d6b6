// SPDX-License-Identifier: Apache-2.0
#include "format/parquet_encoding.h"

#include <fmt/format.h>

#include "dataset/protobuf.h"
#include "format/columnar.h"
#include "format/thrift.h"

namespace stoker {
namespace {

uint64_t varint(Bytes& from) {
  const auto value = take_varint(from);
  if (!value) corrupt("packed integers are cut off");
  return *value;
}

int64_t zigzag(Bytes& from) { return from_zigzag(varint(from)); }

Bytes take(Bytes& from, uint64_t size) {
  if (size > from.size()) corrupt("packed integers are cut off");
  const Bytes taken = from.first(size);
  from = from.subspan(size);
  return taken;
}

/// `width` bits from bit `at` on. REQUIRES: they are there, width <= 64.
uint64_t bits_at(Bytes packed, uint64_t at, unsigned width) {
  uint64_t value = 0;
  unsigned got = 0;
  while (got < width) {
    const auto byte = static_cast<uint64_t>(packed[(at + got) / 8]) >> ((at + got) % 8);
    value |= byte << got;
    got += 8 - (at + got) % 8;
  }
  return width == 64 ? value : value & ((uint64_t{1} << width) - 1);
}

}  // namespace

RunReader::RunReader(Bytes bytes, unsigned width) : rest_(bytes), width_(width) {
  if (width > 32) corrupt(fmt::format("integers packed into {} bits", width));
}

void RunReader::begin_run() {
  const uint64_t head = varint(rest_);
  const uint64_t count = head >> 1;
  if (count == 0) return;
  if ((head & 1) == 0) {
    const Bytes value = take(rest_, (width_ + 7) / 8);
    value_ = 0;
    for (size_t i = 0; i < value.size(); ++i) value_ |= static_cast<uint32_t>(value[i]) << 8 * i;
    repeats_ = count;
    return;
  }
  if (count > rest_.size()) corrupt("packed integers are cut off");
  // The last group may be cut short where its values are not needed.
  packed_ = take(rest_, std::min<uint64_t>(count * width_, rest_.size()));
  packed_left_ = std::min(count * 8, width_ == 0 ? 0 : packed_.size() * 8 / width_);
  packed_at_ = 0;
}

uint32_t RunReader::next() {
  if (width_ == 0) return 0;
  while (repeats_ == 0 && packed_left_ == 0) begin_run();
  if (repeats_ > 0) {
    --repeats_;
    return value_;
  }
  --packed_left_;
  const auto value = static_cast<uint32_t>(bits_at(packed_, packed_at_, width_));
  packed_at_ += width_;
  return value;
}

DeltaReader::DeltaReader(Bytes bytes) : rest_(bytes) {
  const uint64_t per_block = varint(rest_);
  miniblocks_ = varint(rest_);
  left_ = varint(rest_);
  value_ = zigzag(rest_);
  constexpr uint64_t kMostPerBlock = 1 << 20;
  if (miniblocks_ == 0 || per_block > kMostPerBlock || per_block % miniblocks_ != 0 ||
      per_block / miniblocks_ % 32 != 0 || per_block == 0) {
    corrupt(fmt::format("blocks of {} deltas in {} parts", per_block, miniblocks_));
  }
  per_miniblock_ = per_block / miniblocks_;
}

void DeltaReader::begin_miniblock() {
  if (widths_.empty()) {
    least_delta_ = zigzag(rest_);
    widths_ = take(rest_, miniblocks_);
  }
  width_ = static_cast<unsigned>(widths_[0]);
  widths_ = widths_.subspan(1);
  if (width_ > 64) corrupt(fmt::format("deltas packed into {} bits", width_));
  packed_ = take(rest_, per_miniblock_ * width_ / 8);
  in_miniblock_ = per_miniblock_;
  at_ = 0;
}

int64_t DeltaReader::next() {
  if (left_ == 0) corrupt("fewer values than there should be");
  const int64_t value = value_;
  if (--left_ == 0) return value;
  if (in_miniblock_ == 0) begin_miniblock();
  --in_miniblock_;
  const uint64_t delta = bits_at(packed_, at_, width_);
  at_ += width_;
  // Wraps around, as whoever wrote it did.
  value_ = static_cast<int64_t>(static_cast<uint64_t>(value_) +
                                static_cast<uint64_t>(least_delta_) + delta);
  return value;
}

}  // namespace stoker
