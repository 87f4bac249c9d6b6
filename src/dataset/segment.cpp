// SPDX-License-Identifier: Apache-2.0
#include "dataset/segment.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/inner_path.h"
#include "base/json.h"
#include "base/text.h"
#include "dataset/segment_layout.h"

namespace stoker {
namespace {

// A million tables or pages is a segment of 64 GiB: nothing that we write.
constexpr uint64_t kMaxCount = 1'000'000;

bool belongs_to_field(uint16_t kind) {
  return (kind >= static_cast<uint16_t>(TableKind::extents) &&
          kind <= static_cast<uint16_t>(TableKind::present)) ||
         kind == static_cast<uint16_t>(TableKind::runs) ||
         kind == static_cast<uint16_t>(TableKind::crcs);
}

}  // namespace

Segment::Segment(const std::string& path) : path_(path) {
  std::unique_ptr<KeptFile> file;
  try {
    file = std::make_unique<KeptFile>(path);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::not_found) corrupt("a part of the index is missing");
    throw;
  }
  if (file->info().kind != FileKind::file) corrupt("this is not a file");
  const uint64_t file_size = file->info().size;
  written_ns_ = file->info().modified_ns;
  SegmentHeader header{};
  if (file->read_at(0, std::as_writable_bytes(std::span(&header, 1))) != sizeof(header)) {
    corrupt("the file is truncated");
  }
  if (header.magic != kSegmentMagic) corrupt("this is not a segment of an index");
  if (header.version != kSegmentVersion) {
    corrupt(fmt::format("it has version {}, this program reads version {}", header.version,
                        kSegmentVersion));
  }
  const uint64_t front = sizeof(header) + uint64_t{header.table_count} * sizeof(TableRecord) +
                         header.page_count * sizeof(uint32_t);
  if (header.table_count > kMaxCount || header.page_count > kMaxCount ||
      header.data_begin < front || header.data_begin > file_size ||
      header.data_size != file_size - header.data_begin || header.depth > 1 ||
      header.page_count != (header.data_size + PagedFile::kPageSize - 1) / PagedFile::kPageSize) {
    corrupt("its header makes no sense, or the file is truncated");
  }
  std::vector<TableRecord> directory(header.table_count);
  std::vector<uint32_t> sums(header.page_count);
  const MutableBytes directory_bytes = std::as_writable_bytes(std::span(directory));
  const MutableBytes sum_bytes = std::as_writable_bytes(std::span(sums));
  const uint64_t sums_begin = sizeof(header) + directory_bytes.size();
  if (file->read_at(sizeof(header), directory_bytes) != directory_bytes.size() ||
      file->read_at(sums_begin, sum_bytes) != sum_bytes.size()) {
    corrupt("the file is truncated");
  }
  const Bytes head = std::as_bytes(std::span(&header, 1)).first(offsetof(SegmentHeader, crc));
  if (crc32c(sum_bytes, crc32c(directory_bytes, crc32c(head))) != header.crc) {
    corrupt("the checksum of its header differs");
  }
  header_ = {header.samples, static_cast<Depth>(header.depth), header.crc};
  file_ = std::make_unique<PagedFile>(std::move(file), header.data_begin, header.data_size,
                                      std::move(sums));

  uint32_t fields = 0;
  for (const TableRecord& record : directory) {
    if (belongs_to_field(record.kind)) fields = std::max(fields, record.field + 1U);
  }
  field_tables_ = std::vector<FieldTables>(fields);
  for (const TableRecord& record : directory) {
    if (record.offset > header.data_size || record.length > header.data_size - record.offset) {
      corrupt(fmt::format("table {} lies outside of the file", record.kind));
    }
    const Table table{record.offset, record.length, true};
    const auto kind = static_cast<TableKind>(record.kind);
    if (record.kind < general_.size()) general_[record.kind] = table;
    // Other kinds are for later versions of this program: passed over.
    if (!belongs_to_field(record.kind)) continue;
    FieldTables& field = field_tables_[record.field];
    if (kind == TableKind::extents) field.extents = table;
    if (kind == TableKind::scalars) field.scalars = table;
    if (kind == TableKind::suffixes) field.suffixes = table;
    if (kind == TableKind::present) field.present = table;
    if (kind == TableKind::runs) field.runs = table;
    if (kind == TableKind::crcs) field.crcs = table;
  }
  shard_count_ = table(TableKind::shards).length / sizeof(ShardRecord);
  if (table(TableKind::key_ends).length / sizeof(uint64_t) != header_.samples ||
      table(TableKind::key_hashes).length / sizeof(uint64_t) != header_.samples ||
      table(TableKind::key_order).length / sizeof(uint32_t) != header_.samples) {
    corrupt("its tables do not have one entry per sample");
  }
}

Segment::~Segment() { delete meta_.load(std::memory_order_acquire); }

void Segment::corrupt(const std::string& cause) const {
  throw Error(ErrorKind::corrupt, fmt::format("{}: {}: run stoker index", printable(path_), cause));
}

template <typename T>
T Segment::element(const Table& table, uint64_t number, const char* what) const {
  if (number >= table.length / sizeof(T)) corrupt(fmt::format("no {} {}", what, number));
  return file_->read<T>(table.offset + number * sizeof(T));
}

std::unique_ptr<Segment::Meta> Segment::read_meta() const {
  std::string text(table(TableKind::meta).length, '\0');
  file_->read(table(TableKind::meta).offset, std::as_writable_bytes(std::span(text)));
  auto meta = std::make_unique<Meta>();
  try {
    const Json json = parse_json(text);
    for (const Json& field : json.at("fields")) {
      meta->fields.push_back(field_from_json(field, path_));
    }
    for (const Json& chain : json.at("codecs")) {
      std::vector<Codec>& steps = meta->codec_chains.emplace_back();
      for (const Json& step : chain) {
        steps.push_back({checked<uint16_t>(step.at("id")),
                         name_from_json(step.at("parameters").get<std::string>())});
      }
    }
    for (const Json& fault : json.at("faults")) meta->faults.push_back(fault_from_json(fault));
  } catch (const Json::exception&) {
    corrupt("its description of the fields cannot be read");
  }
  if (field_tables_.size() > meta->fields.size()) corrupt("it has tables of fields it lacks");
  return meta;
}

const Segment::Meta& Segment::meta() const {
  const Meta* known = meta_.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  std::unique_ptr<Meta> read = read_meta();
  if (meta_.compare_exchange_strong(known, read.get(), std::memory_order_acq_rel)) {
    return *read.release();
  }
  return *known;
}

Shard Segment::shard(uint32_t number) const {
  const auto record = element<ShardRecord>(table(TableKind::shards), number, "shard");
  if (record.path_offset > table(TableKind::paths).length ||
      record.path_length > table(TableKind::paths).length - record.path_offset ||
      record.compression > static_cast<uint32_t>(Compression::tiled) || record.begin > record.end) {
    corrupt(fmt::format("shard {} makes no sense", number));
  }
  Shard shard;
  shard.path.resize(record.path_length);
  file_->read(table(TableKind::paths).offset + record.path_offset,
              std::as_writable_bytes(std::span(shard.path)));
  shard.path = inner_path(std::move(shard.path), path_);
  shard.size = record.size;
  shard.modified_ns = record.modified_ns;
  shard.begin = record.begin;
  shard.end = record.end;
  shard.crc = record.crc;
  shard.compression = static_cast<Compression>(record.compression);
  return shard;
}

std::string Segment::view(uint32_t number) const {
  const auto record = element<ShardRecord>(table(TableKind::shards), number, "shard");
  if (record.compression != static_cast<uint32_t>(Compression::tiled)) return {};
  return text(TableKind::views, TableKind::view_ends, record.view, "view");
}

std::optional<uint64_t> Segment::plain_size(uint32_t number) const {
  const auto record = element<ShardRecord>(table(TableKind::shards), number, "shard");
  if (record.compression != 0) return std::nullopt;
  return record.size;
}

std::string Segment::text(TableKind texts, TableKind ends, uint64_t n, const char* what) const {
  const uint64_t begin = n == 0 ? 0 : element<uint64_t>(table(ends), n - 1, what);
  const auto end = element<uint64_t>(table(ends), n, what);
  if (begin > end || end > table(texts).length) corrupt(fmt::format("{} {}", what, n));
  std::string text(end - begin, '\0');
  file_->read(table(texts).offset + begin, std::as_writable_bytes(std::span(text)));
  return text;
}

std::string Segment::key(uint64_t sample) const {
  return text(TableKind::keys, TableKind::key_ends, sample, "key");
}

std::string Segment::file_path(uint64_t sample, uint32_t field, const Located& located) const {
  return inner_path(file_name(key(sample), fields().at(field).suffixes.at(located.suffix)), path_);
}

Extent Segment::extent_of(const FieldTables& tables, uint64_t sample) const {
  if (!tables.runs.exists) {
    return from_record(element<ExtentRecord>(tables.extents, sample, "extent"));
  }
  const auto run = element<RunRecord>(tables.runs, 0, "run");
  const uint32_t crc = tables.crcs.exists ? element<uint32_t>(tables.crcs, sample, "checksum") : 0;
  return from_record({run.offset + sample * run.stride, run.length, run.where, crc});
}

Located Segment::locate(uint64_t sample, uint32_t field) const {
  Located located;
  if (sample >= samples()) corrupt(fmt::format("no sample {}", sample));
  const Field& described = fields().at(field);
  if (field >= field_tables_.size()) return located;
  const FieldTables& tables = field_tables_[field];
  const bool stored = tables.extents.exists || tables.runs.exists;
  if (stored) {
    located.extent = extent_of(tables, sample);
    located.present = located.extent.container != Container::absent;
    if (located.extent.container > Container::pieces) {
      corrupt(fmt::format("extent of sample {} makes no sense", sample));
    }
  } else {
    located.present =
        !tables.present.exists || element<uint8_t>(tables.present, sample, "presence") != 0;
  }
  if (!located.present) return located;
  if (tables.suffixes.exists) {
    located.suffix = element<uint16_t>(tables.suffixes, sample, "suffix");
  }
  if (located.suffix >= described.suffixes.size()) {
    corrupt(fmt::format("suffix of sample {} makes no sense", sample));
  }
  if (tables.scalars.exists) {
    located.scalar = element<uint64_t>(tables.scalars, sample, "number");
    located.has_scalar = true;
  } else if (!stored) {
    corrupt(fmt::format("field {} is neither stored nor inline", printable(described.name)));
  }
  return located;
}

std::optional<Extent> Segment::stated(uint64_t sample) const {
  const Table& all = table(TableKind::stated);
  if (!all.exists || depth() == Depth::full) return std::nullopt;
  const Extent extent = from_record(element<ExtentRecord>(all, sample, "stated checksum"));
  return extent.container == Container::shard ? std::optional(extent) : std::nullopt;
}

void Segment::prefetch(uint64_t sample, uint32_t field) const {
  if (field >= field_tables_.size()) return;
  const FieldTables& tables = field_tables_[field];
  if (tables.extents.exists) file_->prefetch(tables.extents.offset + sample * sizeof(ExtentRecord));
  if (tables.crcs.exists) file_->prefetch(tables.crcs.offset + sample * sizeof(uint32_t));
  if (tables.scalars.exists) file_->prefetch(tables.scalars.offset + sample * sizeof(uint64_t));
}

Extent Segment::piece(uint64_t number) const {
  return from_record(element<ExtentRecord>(table(TableKind::pieces), number, "piece"));
}

Block Segment::block(uint32_t number) const {
  const auto record = element<BlockRecord>(table(TableKind::blocks), number, "block");
  return {record.shard,  record.offset,     record.stored_length,      record.decoded_length,
          record.codecs, record.stored_crc, record.has_stored_crc != 0};
}

void Segment::read_here(uint64_t offset, MutableBytes into) const {
  if (offset > table(TableKind::here).length ||
      into.size() > table(TableKind::here).length - offset)
    corrupt("no such inline bytes");
  file_->read(table(TableKind::here).offset + offset, into);
}

std::pair<uint64_t, uint64_t> Segment::hash_at(uint64_t n) const {
  const auto sample = element<uint32_t>(table(TableKind::key_order), n, "key");
  if (sample >= samples()) corrupt("its key table names a sample that it lacks");
  return {element<uint64_t>(table(TableKind::key_hashes), n, "key"), sample};
}

void Segment::find_hash(uint64_t hash, std::vector<uint64_t>& found) const {
  // Hashes are spread evenly, so the place of one can be guessed; fall back to halving when a
  // few guesses have not found it, since nobody promises that.
  uint64_t low = 0;
  uint64_t high = samples();
  uint64_t low_hash = 0;
  uint64_t high_hash = ~uint64_t{0};
  for (int guesses = 0; low < high; ++guesses) {
    uint64_t middle = low + (high - low) / 2;
    if (guesses < 6 && high_hash > low_hash && hash >= low_hash && hash <= high_hash) {
      const double share =
          static_cast<double>(hash - low_hash) / static_cast<double>(high_hash - low_hash);
      middle =
          std::min(high - 1, low + static_cast<uint64_t>(share * static_cast<double>(high - low)));
    }
    const auto here = element<uint64_t>(table(TableKind::key_hashes), middle, "key");
    if (here < hash) {
      low = middle + 1;
      low_hash = here;
    } else {
      high = middle;
      high_hash = here;
    }
  }
  for (; low < samples() && element<uint64_t>(table(TableKind::key_hashes), low, "key") == hash;
       ++low) {
    found.push_back(hash_at(low).second);
  }
}

void Segment::verify_all() const {
  for (const Table& table : general_) verify_table(table);
  for (const FieldTables& field : field_tables_) {
    for (const Table* table : {&field.extents, &field.scalars, &field.suffixes, &field.present,
                               &field.runs, &field.crcs}) {
      verify_table(*table);
    }
  }
}

void Segment::verify_table(const Table& table) const {
  std::byte probe{};
  for (uint64_t at = 0; at < table.length; at += PagedFile::kPageSize) {
    file_->read(table.offset + at, {&probe, 1});
  }
  if (table.length > 0) file_->read(table.offset + table.length - 1, {&probe, 1});
}

}  // namespace stoker
