// SPDX-License-Identifier: Apache-2.0
#include "pack/shard_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/text.h"
#include "dataset/npy.h"
#include "dataset/segment_writer.h"
#include "dataset/value.h"
#include "index/segment_builder.h"
#include "os/readers.h"
#include "os/slow_requests.h"
#include "pack/files_of_shard.h"
#include "pack/out_sample.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

// Samples are gathered, checked and written in groups of at most this size: what was read is then
// still in the cache when it is summed and written.
constexpr size_t kGroupSamples = 256;
// Where each sample lies in files of its own, enough are read together to wait for side by side.
constexpr size_t kFilesTogether = 64;
constexpr uint64_t kMostTogether = 32 << 20;
// What is written at once. More where another thread writes, which is woken for it.
constexpr uint64_t kFlushBytes = 1 << 20;
constexpr uint64_t kHandOverBytes = 4 << 20;

/// One sample on its way.
struct Row {
  std::string key;
  std::vector<OutField> fields;
  std::vector<Item> items;                  // as fields
  std::vector<std::optional<Bytes>> ready;  // bytes of fields that are in memory already
  std::vector<Value> numbers;               // what number fields were found to hold
  std::vector<NpyHeader> arrays;            // what arrays in npy say about themselves
  bool bad = false;
};

std::vector<std::string> paths_of(const ShardJob& job) {
  std::vector<std::string> paths;
  for (const std::string& ending : job.endings) {
    paths.push_back(job.directory + "/" + job.name + ending);
  }
  return paths;
}

class ShardBuilder {
 public:
  explicit ShardBuilder(const ShardJob& job)
      : job_(job),
        index_(job.reader->index()),
        conversion_(*job.conversion),
        out_(job.endings.size()),
        files_(paths_of(job), job.own_thread),
        writer_(job.write->open(conversion_.out(), out_)) {
    for (size_t i = 0; i < job.endings.size(); ++i) segment_.add_shard({});
    for (uint32_t s = 0; s < index_.manifest().segments.size() && !front_to_back_; ++s) {
      const Segment& source = index_.segment(s);
      for (uint32_t i = 0; i < source.shard_count() && !front_to_back_; ++i) {
        front_to_back_ = !source.plain_size(i);
      }
    }
  }

  SegmentEntry run();

 private:
  void add_rows(std::span<const uint64_t> samples, std::vector<Row>& rows);
  std::vector<ReadFailure> fetch(Batch& part);
  bool is_enough(size_t samples, uint64_t bytes) const;
  uint64_t largest_sample() const;
  void write_any(std::span<const uint64_t> samples);
  void write_in_groups(std::span<const uint64_t> samples, size_t size);
  void write_group(std::span<Row> rows);
  void convert(std::span<Row> rows);
  bool place_and_fetch(std::span<Row> rows);
  bool understand(Row& row);
  void left_out(Row& row, Fault fault);
  void describe(const Row& row);
  void complete(std::span<const Row> rows, uint64_t size_before);
  SegmentEntry finish();

  const ShardJob& job_;
  const Index& index_;
  const Conversion& conversion_;
  ShardOutput out_;
  FilesOfShard files_;
  std::unique_ptr<ShardWriter> writer_;
  SegmentWriter segment_;
  SlowRequests requests_;                              // for files of their own
  bool front_to_back_ = false;                         // the source is compressed
  std::vector<std::unique_ptr<std::byte[]>> scratch_;  // what convert() has read for a group
  std::deque<std::string> converted_;                  // and made of it
  Batch batch_;                                        // names the samples that items speak of
  std::vector<OutSample> placed_;                      // the current group
};

void ShardBuilder::left_out(Row& row, Fault fault) {
  if (std::exchange(row.bad, true)) return;  // one reason is enough
  segment_.add_fault(std::move(fault));
}

/// Reads the items. Those in files of their own wait for each other no more than they must.
std::vector<ReadFailure> ShardBuilder::fetch(Batch& part) {
  const bool files =
      !part.items.empty() && part.items.front().located.extent.container == Container::file;
  if (!files) return job_.reader->fetch(part);
  std::vector<std::vector<ReadFailure>> failed(part.items.size());
  requests_.run(part.items.size(), [&](size_t i) {
    Batch one;
    one.samples = {part.samples[part.items[i].row]};
    one.items = {part.items[i]};
    one.items.front().row = 0;
    failed[i] = job_.reader->fetch(one);
    part.items[i].crc = one.items.front().crc;
  });
  std::vector<ReadFailure> failures;
  for (size_t i = 0; i < failed.size(); ++i) {
    for (ReadFailure& failure : failed[i]) {
      failure.item = static_cast<uint32_t>(i);
      failures.push_back(std::move(failure));
    }
  }
  return failures;
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
  scratch_.push_back(std::make_unique_for_overwrite<std::byte[]>(total));
  std::byte* next = scratch_.back().get();
  for (Item& item : part.items) {
    item.data = next;
    next += round_up(item.length, 8);
  }
  for (const ReadFailure& failure : fetch(part)) {
    left_out(*whose[failure.item].first, failure.fault);
  }
  for (size_t i = 0; i < part.items.size(); ++i) {
    auto& [row, k] = whose[i];
    if (row->bad) continue;
    if (conversion_.copies(part.items[i].field)) {
      row->items[k].crc = part.items[i].crc;
      row->ready[k] = Bytes(part.items[i].data, part.items[i].length);
      continue;
    }
    try {
      const Value value = job_.reader->decode(part.items[i]);
      const Field& target = conversion_.target(part.items[i].field);
      row->ready[k] = encoded_already(value, target);
      if (!row->ready[k])
        row->ready[k] = as_bytes(converted_.emplace_back(encode_value(value, target)));
      row->fields[k].length = row->ready[k]->size();
      row->items[k].crc = crc32c(*row->ready[k]);
    } catch (const Error& error) {
      left_out(*row, job_.reader->fault(part, part.items[i], error.what()));
    }
  }
}

/// Whether a sample that could not be converted leaves a gap which others can fill.
bool has_bad_one(std::span<const Row> rows, std::span<const uint64_t> others) {
  return !others.empty() &&
         std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.bad; });
}

/// Decodes what the index will hold of a sample; false where that fails, or where the format cannot
/// store what was read.
bool ShardBuilder::understand(Row& row) {
  row.numbers.clear();
  row.numbers.resize(row.fields.size());
  row.arrays.assign(row.fields.size(), {});
  for (size_t k = 0; k < row.fields.size(); ++k) {
    const OutField& out = row.fields[k];
    const std::string_view unfit =
        job_.write->unfit_value != nullptr ? job_.write->unfit_value(out) : std::string_view();
    if (!unfit.empty()) {
      left_out(row, job_.reader->fault(batch_, row.items[k], std::string(unfit)));
      return false;
    }
    try {
      if (out.encoding == Encoding::npy) {
        row.arrays[k] = parse_npy_header({out.data, out.length});
      }
      if (job_.write->utf8 && out.type == FieldType::text &&
          !is_utf8(as_text(Bytes(out.data, out.length)))) {
        throw Error(ErrorKind::unsupported, "text that is not UTF-8, which this format requires");
      }
      if (out.type == FieldType::number) {
        row.numbers[k] =
            decode_value(conversion_.target(row.items[k].field), {out.data, out.length});
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
  placed_.clear();
  for (Row& row : rows) {
    if (!row.bad) placed_.push_back({row.key, row.fields});
  }
  writer_->place(placed_, out_);
  Batch part;
  part.samples = batch_.samples;
  std::vector<std::pair<Row*, size_t>> whose;
  for (Row& row : rows) {
    for (size_t k = 0; k < row.fields.size() && !row.bad; ++k) {
      if (row.ready[k]) {
        std::copy(row.ready[k]->begin(), row.ready[k]->end(), row.fields[k].data);
      } else {
        part.items.push_back(row.items[k]);
        part.items.back().data = row.fields[k].data;
        whose.emplace_back(&row, k);
      }
    }
  }
  bool good = true;
  for (const ReadFailure& failure : fetch(part)) {
    left_out(*whose[failure.item].first, failure.fault);
    good = false;
  }
  for (size_t i = 0; i < part.items.size(); ++i) {
    auto& [row, k] = whose[i];
    row->items[k].crc = part.items[i].crc;
  }
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
    const Field& field = conversion_.target(row.items[k].field);
    suffixes[k] = job_.write->suffix(field, out.encoding, out.suffix);
    FoundField& one = found[k];
    one.name = field.name;
    one.type = field.type;
    one.encoding = out.encoding;
    one.suffix = suffixes[k];
    one.extent = out.extent;
    one.extent.crc = row.items[k].crc;
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

/// The group is in the buffer: sums and describes it, and writes when there is enough.
void ShardBuilder::complete(std::span<const Row> rows, uint64_t size_before) {
  writer_->seal(out_);
  std::vector<ShardOutput::Known> known;  // fields are summed already
  for (const Row& row : rows) {
    if (row.bad) continue;
    for (size_t k = 0; k < row.fields.size(); ++k) {
      known.push_back({row.fields[k].data, row.fields[k].length, row.items[k].crc});
    }
  }
  out_.sum(std::move(known));
  for (const Row& row : rows) {
    if (!row.bad) describe(row);
  }
  if (job_.progress != nullptr) {
    job_.progress->samples += rows.size();
    job_.progress->bytes += out_.pending() - size_before;
    job_.progress->check_stop();
  }
  if (out_.pending() >= (job_.own_thread ? kHandOverBytes : kFlushBytes)) files_.write(out_);
}

void ShardBuilder::write_group(std::span<Row> rows) {
  scratch_.clear();
  converted_.clear();
  try {
    convert(rows);
    const uint64_t before = out_.pending();
    const ShardOutput::Mark mark = out_.mark();
    while (!place_and_fetch(rows)) out_.rewind(mark);
    complete(rows, before);
  } catch (const std::bad_alloc&) {
    Batch group;
    group.samples = batch_.samples;
    for (const Row& row : rows) {
      group.items.insert(group.items.end(), row.items.begin(), row.items.end());
    }
    throw job_.reader->no_memory(group);
  }
}

void ShardBuilder::add_rows(std::span<const uint64_t> samples, std::vector<Row>& rows) {
  Batch located = job_.reader->locate(samples, conversion_.wanted());
  const size_t first = rows.size();
  const auto first_sample = static_cast<uint32_t>(batch_.samples.size());
  batch_.samples.insert(batch_.samples.end(), samples.begin(), samples.end());
  rows.resize(first + samples.size());
  for (Item& item : located.items) {
    Row& row = rows[first + item.row];
    item.row += first_sample;
    row.items.push_back(item);
  }
  for (size_t i = 0; i < samples.size(); ++i) {
    Row& row = rows[first + i];
    row.key = index_.key(samples[i]);
    conversion_.fields_of(index_, row.items, row.fields);
    row.ready.resize(row.fields.size());
  }
}

bool ShardBuilder::is_enough(size_t samples, uint64_t bytes) const {
  if (bytes < writer_->group_bytes()) return false;
  return !requests_.slow() || samples >= kFilesTogether || bytes >= kMostTogether;
}

/// In groups of as many samples as are best read together.
void ShardBuilder::write_any(std::span<const uint64_t> samples) {
  for (size_t at = 0; at < samples.size(); at += kGroupSamples) {
    std::vector<Row> rows;
    batch_.samples.clear();
    add_rows(samples.subspan(at, std::min(kGroupSamples, samples.size() - at)), rows);
    size_t first = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      for (const OutField& field : rows[i].fields) bytes += field.length;
      if (!is_enough(i + 1 - first, bytes) && i + 1 < rows.size()) continue;
      write_group(std::span(rows).subspan(first, i + 1 - first));
      first = i + 1;
      bytes = 0;
    }
  }
}

/// In groups of `size` samples, also where bad ones are left out.
void ShardBuilder::write_in_groups(std::span<const uint64_t> samples, size_t size) {
  while (!samples.empty()) {
    std::vector<Row> rows;
    batch_.samples.clear();
    scratch_.clear();
    converted_.clear();
    const uint64_t before = out_.pending();
    const ShardOutput::Mark mark = out_.mark();
    do {
      out_.rewind(mark);
      std::erase_if(rows, [](const Row& row) { return row.bad; });
      const size_t count = std::min(size - rows.size(), samples.size());
      const size_t first = rows.size();
      add_rows(samples.first(count), rows);
      samples = samples.subspan(count);
      convert(std::span(rows).subspan(first));
    } while (!place_and_fetch(rows) || has_bad_one(rows, samples));
    if (!rows.empty()) complete(rows, before);
  }
}

uint64_t ShardBuilder::largest_sample() const {
  uint64_t largest = 0;
  for (std::span<const uint64_t> rest = job_.samples; !rest.empty();) {
    const auto some = rest.first(std::min(kGroupSamples, rest.size()));
    rest = rest.subspan(some.size());
    std::vector<uint64_t> sizes(some.size());
    for (const Item& item : job_.reader->locate(some, conversion_.wanted()).items) {
      sizes[item.row] += item.length;
    }
    largest = std::max(largest, *std::max_element(sizes.begin(), sizes.end()));
  }
  return largest;
}

SegmentEntry ShardBuilder::run() {
  std::vector<uint64_t> samples = job_.samples;
  if (job_.write->by_key) {
    std::vector<std::pair<std::string, uint64_t>> keys;
    for (const uint64_t sample : samples) keys.emplace_back(index_.key(sample) + '.', sample);
    std::sort(keys.begin(), keys.end());
    for (size_t i = 0; i < keys.size(); ++i) samples[i] = keys[i].second;
  }
  if (writer_->group() != 0) writer_->expect(largest_sample());
  const size_t group = writer_->group();
  group == 0 ? write_any(samples) : write_in_groups(samples, group);
  return finish();
}

SegmentEntry ShardBuilder::finish() {
  writer_->finish(out_);
  out_.sum();
  files_.write(out_);
  files_.wait();
  for (const std::vector<Codec>& chain : out_.codec_chains()) segment_.add_codecs(chain);
  for (const Block& block : out_.blocks()) segment_.add_block(block);
  for (const ShardOutput::Patch& patch : out_.patches()) {
    files_.file(patch.file).write_at(patch.offset, as_bytes(patch.bytes));
  }
  Readers readers;
  for (uint32_t i = 0; i < files_.count(); ++i) {
    const uint64_t size = files_.file(i).size();
    // No modification time: two runs must give the same bytes, and there are checksums.
    segment_.shards()[i] = {
        job_.name + job_.endings[i], size, 0, 0, size, out_.crc(i), Compression::none};
    files_.file(i).commit();
    readers.add(files_.file(i).path());
  }
  return segment_.write(job_.directory + "/" + kIndexDirectory,
                        SegmentBuilder::stem(segment_name(job_.name), 0), Depth::full,
                        readers.at_most());
}

}  // namespace

std::optional<SegmentEntry> finished_shard(const std::string& directory,
                                           const std::set<std::string>& there,
                                           const std::string& name,
                                           const std::vector<std::string>& endings) {
  for (const std::string& segment_name :
       segments_named(there, SegmentBuilder::stem(segment_name(name), 0))) {
    const std::string path = directory + "/" + kIndexDirectory + "/" + segment_name;
    try {
      const Segment segment(path);
      segment.verify_all();
      // What the system could not read then may be readable now.
      if (count_transient(segment.faults()) > 0) continue;
      bool whole = segment.depth() == Depth::full && segment.shard_count() == endings.size();
      for (uint32_t i = 0; i < segment.shard_count() && whole; ++i) {
        const Shard shard = segment.shard(i);
        const auto file = real_file_system().info(directory + "/" + shard.path, false);
        // A time would say that `index` made it, not `pack`.
        whole = shard.path == name + endings[i] && file && shard.size == file->size &&
                shard.modified_ns == 0;
      }
      if (whole) return entry_of(path, segment);
    } catch (const Error&) {
      continue;  // damaged: the shard is written again
    }
  }
  return std::nullopt;
}

SegmentEntry write_shard(const ShardJob& job) { return ShardBuilder(job).run(); }

}  // namespace stoker
