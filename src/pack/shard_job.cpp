// SPDX-License-Identifier: Apache-2.0
#include "pack/shard_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"
#include "dataset/npy.h"
#include "dataset/segment_writer.h"
#include "dataset/value.h"
#include "index/segment_builder.h"
#include "os/output_file.h"
#include "pack/out_sample.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

// Samples are gathered, checked and written in groups of about this size: what was read is then
// still in the cache when it is summed and written.
constexpr uint64_t kGroupBytes = 1 << 20;
constexpr size_t kGroupSamples = 256;

/// One sample on its way.
struct Row {
  std::string key;
  std::vector<OutField> fields;
  std::vector<Item> items;             // as fields
  std::vector<std::string> converted;  // bytes of fields that are not copied
  std::vector<Value> numbers;          // what number fields were found to hold
  std::vector<NpyHeader> arrays;       // what arrays in npy say about themselves
  bool bad = false;
};

class ShardBuilder {
 public:
  explicit ShardBuilder(const ShardJob& job)
      : job_(job),
        index_(job.reader->index()),
        conversion_(index_.schema(), *job.write),
        file_(job.directory + "/" + job.name),
        writer_(job.write->open()),
        out_(std::make_unique<OutBuffer>(2 * kGroupBytes)) {
    segment_.add_shard({});
    for (uint32_t s = 0; s < index_.manifest().segments.size() && !front_to_back_; ++s) {
      const Segment& source = index_.segment(s);
      front_to_back_ = source.shard_count() > 0 && !source.plain_size(0);
    }
  }

  SegmentEntry run();

 private:
  std::vector<Row> rows_of(std::span<const uint64_t> samples);
  void write_group(std::span<Row> rows);
  void convert(std::span<Row> rows);
  bool place_and_fetch(std::span<Row> rows);
  bool understand(Row& row);
  void left_out(Row& row, Fault fault);
  void describe(const Row& row);
  void sum(std::span<const Row> rows, size_t begin);
  void flush();

  const ShardJob& job_;
  const Index& index_;
  Conversion conversion_;
  OutputFile file_;
  std::unique_ptr<ShardWriter> writer_;
  std::unique_ptr<OutBuffer> out_;
  SegmentWriter segment_;
  bool front_to_back_ = false;            // the source is compressed
  std::unique_ptr<std::byte[]> scratch_;  // what convert() has read
  Batch batch_;                           // names the samples that items speak of
  uint32_t crc_ = 0;                      // of the shard so far
};

void ShardBuilder::left_out(Row& row, Fault fault) {
  if (std::exchange(row.bad, true)) return;  // one reason is enough
  segment_.add_fault(std::move(fault));
}

/// Reads and converts the fields whose bytes cannot go over as they are. From a compressed source
/// all fields are read here, in the order in which they lie: going back would begin at its front.
void ShardBuilder::convert(std::span<Row> rows) {
  Batch part;
  part.samples = batch_.samples;
  std::vector<std::pair<Row*, size_t>> whose;
  uint64_t total = 0;
  for (Row& row : rows) {
    for (size_t k = 0; k < row.items.size(); ++k) {
      if (conversion_.copies(row.items[k].field) && !front_to_back_) continue;
      part.items.push_back(row.items[k]);
      whose.emplace_back(&row, k);
      total += round_up(row.items[k].length, 8);
    }
  }
  if (part.items.empty()) return;
  scratch_ = std::make_unique_for_overwrite<std::byte[]>(total);
  std::byte* next = scratch_.get();
  for (Item& item : part.items) {
    item.data = next;
    next += round_up(item.length, 8);
  }
  for (const ReadFailure& failure : job_.reader->fetch(part)) {
    left_out(*whose[failure.item].first, failure.fault);
  }
  for (size_t i = 0; i < part.items.size(); ++i) {
    auto& [row, k] = whose[i];
    if (row->bad) continue;
    if (conversion_.copies(part.items[i].field)) {
      row->items[k] = part.items[i];
      continue;
    }
    try {
      const Value value = job_.reader->decode(part.items[i]);
      row->converted[k] = encode_value(value, row->fields[k].encoding);
      row->fields[k].length = row->converted[k].size();
      row->items[k].crc = crc32c(as_bytes(row->converted[k]));
    } catch (const Error& error) {
      left_out(*row, job_.reader->fault(part, part.items[i], error.what()));
    }
  }
}

/// Decodes what the index will hold of a sample; false where that fails.
bool ShardBuilder::understand(Row& row) {
  row.numbers.clear();
  row.numbers.resize(row.fields.size());
  row.arrays.assign(row.fields.size(), {});
  for (size_t k = 0; k < row.fields.size(); ++k) {
    const OutField& out = row.fields[k];
    try {
      if (out.encoding == Encoding::npy) {
        row.arrays[k] = parse_npy_header({out.data, out.length});
      }
      if (out.type == FieldType::number) {
        Field written = index_.schema().fields[row.items[k].field];
        written.encoding = out.encoding;
        row.numbers[k] = decode_value(written, {out.data, out.length});
      }
    } catch (const Error& error) {
      left_out(row, job_.reader->fault(batch_, row.items[k], error.what()));
      return false;
    }
  }
  return true;
}

/// Lays the samples out in the buffer and reads their bytes into it. False when one of them
/// turned out to be bad: it has to be done again without it.
bool ShardBuilder::place_and_fetch(std::span<Row> rows) {
  Batch part;
  part.samples = batch_.samples;
  std::vector<std::pair<Row*, size_t>> whose;
  for (Row& row : rows) {
    if (row.bad) continue;
    writer_->place(row.key, row.fields, file_.size(), *out_);
    for (size_t k = 0; k < row.fields.size(); ++k) {
      if (conversion_.copies(row.items[k].field) && row.items[k].data != nullptr) {
        std::memcpy(row.fields[k].data, row.items[k].data, row.items[k].length);
      } else if (conversion_.copies(row.items[k].field)) {
        part.items.push_back(row.items[k]);
        part.items.back().data = row.fields[k].data;
        whose.emplace_back(&row, k);
      } else {
        std::memcpy(row.fields[k].data, row.converted[k].data(), row.converted[k].size());
      }
    }
  }
  bool good = true;
  for (const ReadFailure& failure : job_.reader->fetch(part)) {
    left_out(*whose[failure.item].first, failure.fault);
    good = false;
  }
  for (size_t i = 0; i < part.items.size(); ++i) {
    auto& [row, k] = whose[i];
    row->items[k].crc = part.items[i].crc;
  }
  writer_->seal();
  for (Row& row : rows) {
    if (!row.bad && !understand(row)) good = false;
  }
  return good;
}

void ShardBuilder::describe(const Row& row) {
  std::vector<FoundField> found(row.fields.size());
  std::vector<std::string> suffixes(row.fields.size());
  for (size_t k = 0; k < row.fields.size(); ++k) {
    const OutField& out = row.fields[k];
    const Field& field = index_.schema().fields[row.items[k].field];
    suffixes[k] = job_.write->suffix(field, out.encoding, out.suffix);
    FoundField& one = found[k];
    one.name = field.name;
    one.type = field.type;
    one.encoding = out.encoding;
    one.suffix = suffixes[k];
    one.extent = {Container::shard, 0, out.offset, out.length, row.items[k].crc};
    if (out.encoding == Encoding::npy) {
      one.dtype = row.arrays[k].dtype;
      one.shape = row.arrays[k].shape;
    } else {
      one.dtype = field.dtype;
      one.shape = field.shape;
    }
    if (const auto* integer = std::get_if<int64_t>(&row.numbers[k])) one.integer = *integer;
    if (const auto* real = std::get_if<double>(&row.numbers[k])) one.real = *real;
  }
  segment_.add_sample(row.key, found);
}

/// Takes what the buffer holds from `begin` on into the shard's checksum: fields are summed
/// already, so only what lies between them is.
void ShardBuilder::sum(std::span<const Row> rows, size_t begin) {
  struct Known {
    const std::byte* data;
    uint64_t length;
    uint32_t crc;
  };
  std::vector<Known> known;
  for (const Row& row : rows) {
    if (row.bad) continue;
    for (size_t k = 0; k < row.fields.size(); ++k) {
      known.push_back({row.fields[k].data, row.fields[k].length, row.items[k].crc});
    }
  }
  std::sort(known.begin(), known.end(),
            [](const Known& a, const Known& b) { return a.data < b.data; });
  const std::byte* at = out_->data() + begin;
  for (const Known& field : known) {
    crc_ = crc32c({at, field.data}, crc_);
    crc_ = crc32c_combine(crc_, field.crc, field.length);
    at = field.data + field.length;
  }
  crc_ = crc32c({at, out_->data() + out_->size()}, crc_);
}

void ShardBuilder::flush() {
  file_.write(out_->bytes());
  out_->shrink(0);
}

void ShardBuilder::write_group(std::span<Row> rows) {
  convert(rows);
  uint64_t needed = ShardWriter::kMaxShardEnd;
  for (const Row& row : rows) needed += job_.write->size_of_sample(row.key, row.fields);
  if (needed > out_->capacity() - out_->size()) {
    flush();
    if (needed > out_->capacity()) out_ = std::make_unique<OutBuffer>(needed);
  }
  const size_t begin = out_->size();
  while (!place_and_fetch(rows)) out_->shrink(begin);
  sum(rows, begin);
  for (const Row& row : rows) {
    if (!row.bad) describe(row);
  }
  if (job_.progress != nullptr) {
    job_.progress->samples += rows.size();
    job_.progress->bytes += out_->size() - begin;
    job_.progress->check_stop();
  }
  if (out_->size() >= kGroupBytes) flush();
}

std::vector<Row> ShardBuilder::rows_of(std::span<const uint64_t> samples) {
  batch_ = job_.reader->locate(samples);
  std::vector<Row> rows(samples.size());
  for (const Item& item : batch_.items) rows[item.row].items.push_back(item);
  for (size_t i = 0; i < samples.size(); ++i) {
    rows[i].key = index_.key(samples[i]);
    conversion_.fields_of(index_, rows[i].items, rows[i].fields);
    rows[i].converted.resize(rows[i].fields.size());
  }
  return rows;
}

SegmentEntry ShardBuilder::run() {
  const std::span<const uint64_t> samples = job_.samples;
  for (size_t at = 0; at < samples.size(); at += kGroupSamples) {
    std::vector<Row> rows =
        rows_of(samples.subspan(at, std::min(kGroupSamples, samples.size() - at)));
    size_t first = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      for (const OutField& field : rows[i].fields) bytes += field.length;
      if (bytes < kGroupBytes && i + 1 < rows.size()) continue;
      write_group(std::span(rows).subspan(first, i + 1 - first));
      first = i + 1;
      bytes = 0;
    }
  }
  flush();
  writer_->finish(*out_);
  crc_ = crc32c(out_->bytes(), crc_);
  flush();
  const uint64_t size = file_.size();
  // No modification time: two runs must give the same bytes, and there are checksums.
  segment_.shards().front() = {job_.name, size, 0, 0, size, crc_, Compression::none};
  file_.commit();
  return segment_.write(job_.directory + "/" + kIndexDirectory,
                        SegmentBuilder::stem(segment_name(job_.name), 0), Depth::full, 0);
}

}  // namespace

std::optional<SegmentEntry> finished_shard(const std::string& directory,
                                           const std::set<std::string>& there,
                                           const std::string& name) {
  const auto file = real_file_system().info(directory + "/" + name, false);
  if (!file) return std::nullopt;
  for (const std::string& segment_name :
       segments_named(there, SegmentBuilder::stem(segment_name(name), 0))) {
    const std::string path = directory + "/" + kIndexDirectory + "/" + segment_name;
    try {
      const Segment segment(path);
      segment.verify_all();
      const Shard shard = segment.shard(0);
      // A time would say that `index` made it, not `pack`.
      if (shard.path == name && shard.size == file->size && segment.depth() == Depth::full &&
          shard.modified_ns == 0) {
        return entry_of(path, segment);
      }
    } catch (const Error&) {
      continue;  // damaged: the shard is written again
    }
  }
  return std::nullopt;
}

SegmentEntry write_shard(const ShardJob& job) { return ShardBuilder(job).run(); }

}  // namespace stoker
