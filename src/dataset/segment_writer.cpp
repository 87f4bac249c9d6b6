// SPDX-License-Identifier: Apache-2.0
#include "dataset/segment_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <deque>
#include <numeric>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "dataset/paged_file.h"
#include "dataset/segment.h"
#include "dataset/segment_layout.h"
#include "os/output_file.h"

namespace stoker {
namespace {

/// Lays tables one after the other, and keeps the directory. Tables are not copied: what is added
/// stays where it is until it is written, or is handed over.
class Tables {
 public:
  template <typename T>
  void add(TableKind kind, uint32_t field, const std::vector<T>& elements) {
    add(kind, field, sizeof(T), std::as_bytes(std::span(elements)));
  }

  void add(TableKind kind, uint32_t field, uint32_t element_size, Bytes bytes) {
    const uint64_t begin = round_up(size_, 8);
    pieces_.push_back(Bytes(kPadding).first(begin - size_));
    directory_.push_back({static_cast<uint16_t>(kind), static_cast<uint16_t>(field), element_size,
                          begin, bytes.size()});
    pieces_.push_back(bytes);
    size_ = begin + bytes.size();
  }

  /// Header, directory and page checksums: what comes before the tables.
  std::vector<std::byte> front(uint64_t samples, Depth depth, uint32_t& crc) const {
    const std::vector<uint32_t> sums = page_checksums();
    const Bytes directory = std::as_bytes(std::span(directory_));
    const Bytes checksums = std::as_bytes(std::span(sums));
    SegmentHeader header{};
    header.magic = kSegmentMagic;
    header.version = kSegmentVersion;
    header.table_count = static_cast<uint32_t>(directory_.size());
    header.samples = samples;
    header.depth = static_cast<uint64_t>(depth);
    header.data_begin = round_up(sizeof(header) + directory.size() + checksums.size(), 64);
    header.data_size = size_;
    header.page_count = sums.size();
    const Bytes head = std::as_bytes(std::span(&header, 1));
    const uint32_t head_crc = crc32c(head.first(offsetof(SegmentHeader, crc)));
    header.crc = crc = crc32c(checksums, crc32c(directory, head_crc));

    std::vector<std::byte> front(header.data_begin);
    std::copy(head.begin(), head.end(), front.begin());
    auto end = std::copy(directory.begin(), directory.end(), front.begin() + sizeof(header));
    std::copy(checksums.begin(), checksums.end(), end);
    return front;
  }

  const std::vector<Bytes>& pieces() const { return pieces_; }

 private:
  static constexpr std::array<std::byte, 8> kPadding{};

  std::vector<uint32_t> page_checksums() const {
    std::vector<uint32_t> sums;
    uint64_t filled = 0;  // of the current page
    for (Bytes piece : pieces_) {
      while (!piece.empty()) {
        if (filled == 0) sums.push_back(0);
        const size_t count = std::min<uint64_t>(piece.size(), PagedFile::kPageSize - filled);
        sums.back() = crc32c(piece.first(count), sums.back());
        piece = piece.subspan(count);
        filled = (filled + count) % PagedFile::kPageSize;
      }
    }
    return sums;
  }

  std::vector<TableRecord> directory_;
  std::vector<Bytes> pieces_;
  uint64_t size_ = 0;
};

/// A key's hash and whose it is.
struct HashedKey {
  uint64_t hash;
  uint32_t sample;

  bool operator<(const HashedKey& other) const {
    return hash != other.hash ? hash < other.hash : sample < other.sample;
  }
};

/// Sorted by hash. Hashes are spread evenly, so a first pass puts each nearly in its place.
std::vector<HashedKey> sorted_by_hash(const std::vector<HashedKey>& keys) {
  const int bits = std::max(1, static_cast<int>(std::bit_width(keys.size() / 4)));
  const auto bucket = [&](const HashedKey& key) { return key.hash >> (64 - bits); };
  std::vector<uint32_t> ends((size_t{1} << bits) + 1);
  for (const HashedKey& key : keys) ++ends[bucket(key) + 1];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<HashedKey> sorted(keys.size());
  std::vector<uint32_t> next(ends.begin(), ends.end() - 1);
  for (const HashedKey& key : keys) sorted[next[bucket(key)]++] = key;
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    std::sort(sorted.begin() + ends[i], sorted.begin() + ends[i + 1]);
  }
  return sorted;
}

/// The extents of a column as one run, where they lie in one shard at equal distances.
std::optional<RunRecord> run_of(const std::vector<Extent>& extents) {
  constexpr size_t kWorthIt = 8;
  if (extents.size() < kWorthIt || extents[0].container != Container::shard) return std::nullopt;
  const ExtentRecord first = to_record(extents[0]);
  const uint64_t stride = extents[1].offset - first.offset;
  for (size_t i = 0; i < extents.size(); ++i) {
    const ExtentRecord one = to_record(extents[i]);
    if (one.where != first.where || one.length != first.length ||
        one.offset != first.offset + i * stride) {
      return std::nullopt;
    }
  }
  return RunRecord{first.offset, stride, first.length, first.where, 0};
}

/// Whether an array's shape follows from what a field says and the number of its bytes.
bool tells_shape(const Field& field) {
  return field.dtype != DType::unknown && field.shape &&
         std::find(field.shape->begin() + (field.shape->empty() ? 0 : 1), field.shape->end(), -1) ==
             field.shape->end();
}

}  // namespace

uint32_t SegmentWriter::add_shard(const Shard& shard) {
  shards_.push_back(shard);
  return static_cast<uint32_t>(shards_.size() - 1);
}

uint32_t SegmentWriter::add_block(const Block& block) {
  blocks_.push_back(block);
  return static_cast<uint32_t>(blocks_.size() - 1);
}

uint32_t SegmentWriter::add_codecs(std::vector<Codec> chain) {
  const auto known = std::find(codec_chains_.begin(), codec_chains_.end(), chain);
  const auto number = static_cast<uint32_t>(known - codec_chains_.begin());
  if (known == codec_chains_.end()) codec_chains_.push_back(std::move(chain));
  return number;
}

std::string_view SegmentWriter::key(uint64_t sample) const {
  const uint64_t begin = sample == 0 ? 0 : key_ends_[sample - 1];
  return std::string_view(keys_).substr(begin, key_ends_[sample] - begin);
}

uint16_t SegmentWriter::suffix(uint64_t sample, uint32_t field) const {
  return columns_[field].suffixes[sample];
}

std::string SegmentWriter::file_path(uint64_t sample, uint32_t field) const {
  return file_name(std::string(key(sample)), fields_[field].suffixes[suffix(sample, field)]);
}

SegmentWriter::Place SegmentWriter::place_of(const FoundField& found, uint32_t guess,
                                             std::string& conflict) {
  uint32_t number = guess < fields_.size() && fields_[guess].name == found.name ? guess : 0;
  while (number < fields_.size() && fields_[number].name != found.name) ++number;
  const auto seen = [&found] {
    return Field{std::string(found.name),     found.type, found.encoding, found.dtype, found.shape,
                 {std::string(found.suffix)}, 1};
  };
  if (number == fields_.size()) {
    fields_.push_back(seen());
    columns_.emplace_back();
    pad(number, samples());
    if (found.encoding != Encoding::none) columns_.back().extents.resize(samples());
    return {number, 0};
  }
  Field& field = fields_[number];
  const auto suffix = [&] {
    return std::find(field.suffixes.begin(), field.suffixes.end(), found.suffix) -
           field.suffixes.begin();
  };
  const auto known = static_cast<size_t>(suffix());
  if (known < field.suffixes.size() && field.type == found.type &&
      field.encoding == found.encoding && field.dtype == found.dtype &&
      field.shape == found.shape) {
    ++field.present;
    return {number, static_cast<uint16_t>(known)};
  }
  Field merged = field;
  if (!merge_field(merged, seen())) {
    conflict = fmt::format("field {} is {} ({}) here but {} ({}) in earlier samples",
                           printable(found.name), name_of(found.type), name_of(found.encoding),
                           name_of(field.type), name_of(field.encoding));
  } else if (is_elements(found.encoding) && !tells_shape(merged)) {
    conflict = fmt::format("field {} has another dtype or shape than in earlier samples",
                           printable(found.name));
  } else {
    field = std::move(merged);
  }
  return {number, static_cast<uint16_t>(suffix())};
}

std::vector<std::string> SegmentWriter::add_sample(std::string_view key,
                                                   std::span<const FoundField> fields) {
  std::vector<std::string> conflicts;
  const uint64_t number = samples();
  uint32_t guess = 0;  // most samples have their fields in the same order
  for (const FoundField& found : fields) {
    std::string conflict;
    const auto [field_number, suffix] = place_of(found, guess, conflict);
    guess = field_number + 1;
    Column& column = columns_[field_number];
    if (conflict.empty() && column.present.size() > number) {
      conflict = fmt::format("field {} occurs twice", printable(found.name));
      --fields_[field_number].present;
    }
    if (!conflict.empty()) {
      conflicts.push_back(std::move(conflict));
      continue;
    }
    column.suffixes.push_back(suffix);
    column.present.push_back(1);
    if (found.type == FieldType::number) {
      column.scalars.push_back(0);
      column.has_scalar.push_back(0);
    }
    if (found.encoding != Encoding::none) {
      Extent extent = found.extent;
      if (extent.container == Container::file) extent.number = suffix;
      if (extent.container == Container::here) {
        extent.length = found.inline_bytes.size();
        // A value that is the same as the one before takes no room.
        const Extent last = column.extents.empty() ? Extent() : column.extents.back();
        const bool again =
            last.container == Container::here && here_bytes(last) == found.inline_bytes;
        extent.offset = again ? last.offset : here_.size();
        if (!again) here_ += found.inline_bytes;
      }
      if (extent.container == Container::pieces) extent = add_pieces(found.pieces);
      column.extents.push_back(extent);
      bytes_ += extent.length;
    }
    if (found.integer) set_integer(number, field_number, *found.integer);
    if (found.real) set_real(number, field_number, *found.real);
  }
  for (uint32_t field = 0; field < columns_.size(); ++field) {
    if (columns_[field].present.size() == number) pad(field, number + 1);
  }
  keys_ += key;
  key_ends_.push_back(keys_.size());
  return conflicts;
}

void SegmentWriter::set_stated(const Extent& bytes) {
  stated_.resize(samples());
  stated_.back() = bytes;
}

Extent SegmentWriter::add_pieces(std::span<const Extent> pieces) {
  Extent extent{Container::pieces, 0, pieces_.size(), 0, 0};
  for (const Extent& piece : pieces) {
    if (piece.length == 0) continue;
    extent.length += piece.length;
    pieces_.push_back(piece);
  }
  return extent;
}

std::span<const Extent> SegmentWriter::pieces(const Extent& extent) const {
  size_t count = 0;
  for (uint64_t length = 0; length < extent.length; ++count) {
    length += pieces_[extent.offset + count].length;
  }
  return std::span(pieces_).subspan(extent.offset, count);
}

/// Makes the column of a field as long as that many samples that do not have it.
void SegmentWriter::pad(uint32_t field, uint64_t samples) {
  Column& column = columns_[field];
  column.suffixes.resize(samples);
  column.present.resize(samples);
  if (fields_[field].type == FieldType::number) {
    column.scalars.resize(samples);
    column.has_scalar.resize(samples);
  }
  if (!column.extents.empty()) column.extents.resize(samples);
}

void SegmentWriter::set_scalar(uint64_t sample, uint32_t field, uint64_t bits) {
  columns_[field].scalars[sample] = bits;
  columns_[field].has_scalar[sample] = 1;
}

void SegmentWriter::set_integer(uint64_t sample, uint32_t field, int64_t value) {
  set_scalar(sample, field, std::bit_cast<uint64_t>(value));
}

void SegmentWriter::set_real(uint64_t sample, uint32_t field, double value) {
  set_scalar(sample, field, std::bit_cast<uint64_t>(value));
}

void SegmentWriter::refine_array(uint32_t field, DType dtype, const std::vector<int64_t>& shape) {
  if (!std::exchange(columns_[field].shape_seen, true)) {
    fields_[field].dtype = dtype;
    fields_[field].shape = shape;
    return;
  }
  if (fields_[field].dtype != dtype) fields_[field].dtype = DType::unknown;
  if (!fields_[field].shape || *fields_[field].shape == shape) return;
  if (fields_[field].shape->size() != shape.size()) {
    fields_[field].shape.reset();
    return;
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    if ((*fields_[field].shape)[i] != shape[i]) (*fields_[field].shape)[i] = -1;
  }
}

std::string SegmentWriter::meta() const {
  Json meta;
  meta["fields"] = Json::array();
  for (const Field& field : fields_) meta["fields"].push_back(to_json(field));
  meta["codecs"] = Json::array();
  for (const std::vector<Codec>& chain : codec_chains_) {
    Json steps = Json::array();
    for (const Codec& codec : chain) {
      steps.push_back({{"id", codec.id}, {"parameters", name_to_json(codec.parameters)}});
    }
    meta["codecs"].push_back(std::move(steps));
  }
  meta["faults"] = Json::array();
  for (const Fault& fault : faults_) meta["faults"].push_back(to_json(fault));
  return meta.dump();
}

SegmentEntry SegmentWriter::write(const std::string& directory, const std::string& stem,
                                  Depth depth, const Access& access) const {
  SegmentEntry entry;
  entry.samples = samples();
  entry.bytes = bytes_;

  Tables tables;
  const std::string meta = this->meta();
  tables.add(TableKind::meta, 0, 1, as_bytes(meta));
  std::string paths;
  std::string views;
  std::vector<uint64_t> view_ends;
  std::vector<ShardRecord> shards;
  for (const Shard& shard : shards_) {
    shards.push_back({paths.size(), static_cast<uint32_t>(shard.path.size()),
                      static_cast<uint32_t>(shard.compression), shard.size, shard.modified_ns,
                      shard.begin, shard.end, shard.crc, 0});
    paths += shard.path;
    if (shard.compression == Compression::tiled) {
      shards.back().view = static_cast<uint32_t>(view_ends.size());
      views += shard.view;
      view_ends.push_back(views.size());
    }
    if (begins(shard)) ++entry.shards;
  }
  if (!shards.empty()) {
    tables.add(TableKind::shards, 0, shards);
    tables.add(TableKind::paths, 0, 1, as_bytes(paths));
  }
  if (!view_ends.empty()) {
    tables.add(TableKind::views, 0, 1, as_bytes(views));
    tables.add(TableKind::view_ends, 0, view_ends);
  }
  tables.add(TableKind::keys, 0, 1, as_bytes(keys_));
  tables.add(TableKind::key_ends, 0, key_ends_);

  std::vector<HashedKey> keys(samples());
  for (uint32_t i = 0; i < samples(); ++i) keys[i] = {hash64(key(i)), i};
  keys = sorted_by_hash(keys);
  std::vector<uint64_t> hashes(samples());
  std::vector<uint32_t> order(samples());
  for (size_t i = 0; i < keys.size(); ++i) {
    hashes[i] = keys[i].hash;
    order[i] = keys[i].sample;
  }
  tables.add(TableKind::key_hashes, 0, hashes);
  tables.add(TableKind::key_order, 0, order);

  std::deque<std::vector<ExtentRecord>> records;
  const auto to_records = [&](const std::vector<Extent>& extents) -> const auto& {
    std::vector<ExtentRecord>& made = records.emplace_back(extents.size());
    std::transform(extents.begin(), extents.end(), made.begin(), to_record);
    return made;
  };
  std::deque<std::vector<RunRecord>> runs;
  std::deque<std::vector<uint32_t>> crcs;
  for (uint32_t f = 0; f < fields_.size(); ++f) {
    const Column& column = columns_[f];
    const std::optional<RunRecord> run = run_of(column.extents);
    if (run) {
      tables.add(TableKind::runs, f, runs.emplace_back(1, *run));
    } else if (!column.extents.empty()) {
      tables.add(TableKind::extents, f, to_records(column.extents));
    }
    if (run && depth == Depth::full) {
      std::vector<uint32_t>& sums = crcs.emplace_back(samples());
      std::transform(column.extents.begin(), column.extents.end(), sums.begin(),
                     [](const Extent& extent) { return extent.crc; });
      tables.add(TableKind::crcs, f, sums);
    }
    for (const Extent& extent : column.extents) {
      if (extent.container == Container::file) ++entry.shards;
    }
    // Inline all of a field or none: then one flag per field tells, not one per sample.
    const bool scalar = fields_[f].type == FieldType::number && column.has_scalar == column.present;
    if (scalar) tables.add(TableKind::scalars, f, column.scalars);
    if (fields_[f].suffixes.size() > 1) tables.add(TableKind::suffixes, f, column.suffixes);
    if (fields_[f].encoding == Encoding::none && fields_[f].present < samples()) {
      tables.add(TableKind::present, f, column.present);
    }
  }
  if (!pieces_.empty()) tables.add(TableKind::pieces, 0, to_records(pieces_));
  if (!stated_.empty() && depth == Depth::structure) {
    std::vector<Extent> stated = stated_;
    stated.resize(samples());
    tables.add(TableKind::stated, 0, to_records(stated));
  }
  std::vector<BlockRecord> blocks;
  for (const Block& block : blocks_) {
    blocks.push_back({block.shard, block.codecs, block.offset, block.stored_length,
                      block.decoded_length, block.stored_crc, block.has_stored_crc ? 1U : 0U});
  }
  if (!blocks.empty()) tables.add(TableKind::blocks, 0, blocks);
  if (!here_.empty()) tables.add(TableKind::here, 0, 1, as_bytes(here_));

  const std::vector<std::byte> front = tables.front(samples(), depth, entry.header_crc);
  entry.file = fmt::format("{}.{:08x}.seg", stem, entry.header_crc);
  entry.faults = faults_.size();
  OutputFile file(directory + "/" + entry.file, access);
  file.write(front);
  for (const Bytes piece : tables.pieces()) file.write(piece);
  file.commit();
  return entry;
}

}  // namespace stoker
