// SPDX-License-Identifier: Apache-2.0
#include "dataset/row_index_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/text.h"
#include "os/page_cache.h"

namespace stoker {
namespace {

constexpr uint64_t kMagic = 0x53574F5252454B53;  // "SKERROWS"
constexpr uint32_t kVersion = 0;
constexpr size_t kPiece = 1 << 20;  // that is read or written at once

struct Header {
  uint64_t magic;
  uint32_t version;
  uint32_t segment_crc;
  uint64_t samples;
  uint32_t field;
  uint32_t every;
  uint64_t photo_bytes;
  std::array<uint64_t, RowIndexFacts::kWays> photos;
  uint32_t data_crc;
  uint32_t crc;  // of this header up to here, and of the ends
};
static_assert(sizeof(Header) == 176);

uint32_t checksum(const Header& header, const std::vector<uint64_t>& ends) {
  const Bytes front = std::as_bytes(std::span(&header, 1)).first(offsetof(Header, crc));
  return crc32c(std::as_bytes(std::span(ends)), crc32c(front));
}

uint64_t begin_of_data(uint64_t samples) { return sizeof(Header) + samples * sizeof(uint64_t); }

}  // namespace

std::string row_index_path(const std::string& segment) {
  constexpr std::string_view kEnding = ".seg";
  return segment.substr(0, segment.size() - kEnding.size()) + ".rows";
}

RowIndexFile::RowIndexFile(const std::string& path, uint32_t segment_crc, uint64_t samples)
    : file_(path) {
  Header header{};
  const MutableBytes front = std::as_writable_bytes(std::span(&header, 1));
  if (file_.read_at(0, front) != front.size()) corrupt("the file is truncated");
  if (header.magic != kMagic || header.version != kVersion) corrupt("of another version");
  if (header.segment_crc != segment_crc || header.samples != samples) {
    corrupt("it belongs to another segment");
  }
  const uint64_t size = file_.info().size;
  if (size < sizeof header || samples > (size - sizeof header) / sizeof(uint64_t)) {
    corrupt("the file is truncated");
  }
  data_begin_ = begin_of_data(samples);
  ends_.resize(samples);
  const MutableBytes ends = std::as_writable_bytes(std::span(ends_));
  if (file_.read_at(sizeof header, ends) != ends.size()) corrupt("the file is truncated");
  if (checksum(header, ends_) != header.crc || !std::is_sorted(ends_.begin(), ends_.end())) {
    corrupt("checksum differs");
  }
  if (size - data_begin_ != bytes()) corrupt("its size is another");
  facts_ = {header.field, header.every, header.photo_bytes, header.photos};
  data_crc_ = header.data_crc;
  file_.settle();
}

void RowIndexFile::corrupt(const char* cause) const {
  throw Error(ErrorKind::corrupt, fmt::format("{}: the row indexes are damaged ({}): run stoker "
                                              "index --full",
                                              printable(file_.path()), cause));
}

bool RowIndexFile::read(uint64_t first, MutableBytes into) const {
  try {
    return file_.read_at(data_begin_ + begin(first), into) == into.size();
  } catch (const Error&) {
    return false;
  }
}

void RowIndexFile::verify_all() const {
  std::vector<std::byte> piece(std::min<uint64_t>(kPiece, bytes()));
  uint32_t crc = 0;
  const auto file = real_file_system().open(file_.path());
  for (uint64_t at = 0; at < bytes(); at += piece.size()) {
    const MutableBytes into =
        MutableBytes(piece).first(std::min<uint64_t>(piece.size(), bytes() - at));
    if (file->read_at(data_begin_ + at, into) != into.size()) corrupt("the file is truncated");
    crc = crc32c(into, crc);
  }
  if (crc != data_crc_) corrupt("checksum differs");
}

RowIndexFileWriter::RowIndexFileWriter(const std::string& path, uint32_t segment_crc,
                                       uint64_t samples, const Access& access)
    : file_(path, access), segment_crc_(segment_crc), samples_(samples) {
  ends_.reserve(samples);
  // Header and ends come into this place when they are known.
  const std::vector<std::byte> zeros(kPiece);
  for (uint64_t left = begin_of_data(samples); left > 0;) {
    const uint64_t count = std::min<uint64_t>(left, zeros.size());
    file_.write(Bytes(zeros).first(count));
    left -= count;
  }
}

void RowIndexFileWriter::add(Bytes row_index) {
  pending_.insert(pending_.end(), row_index.begin(), row_index.end());
  ends_.push_back((ends_.empty() ? 0 : ends_.back()) + row_index.size());
  if (pending_.size() < kPiece && ends_.size() < samples_) return;
  data_crc_ = crc32c(pending_, data_crc_);
  file_.write(pending_);
  pending_.clear();
}

void RowIndexFileWriter::commit(const RowIndexFacts& facts) {
  Header header{kMagic,      kVersion,          segment_crc_, samples_,  facts.field,
                facts.every, facts.photo_bytes, facts.photos, data_crc_, 0};
  header.crc = checksum(header, ends_);
  file_.write_at(0, std::as_bytes(std::span(&header, 1)));
  file_.write_at(sizeof header, std::as_bytes(std::span(ends_)));
  file_.commit();
}

}  // namespace stoker
