// SPDX-License-Identifier: Apache-2.0
#include "index/segment_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "dataset/codec.h"
#include "dataset/segment.h"
#include "index/full_pass.h"

namespace stoker {
namespace fs = std::filesystem;

SegmentBuilder::SegmentBuilder(const Source& source, std::string directory, std::string name,
                               const std::set<std::string>& there, const IndexOptions& options,
                               unsigned threads, uint32_t mode, const RowIndexWork* rows)
    : source_(source),
      directory_(std::move(directory)),
      name_(std::move(name)),
      there_(there),
      options_(options),
      threads_(threads),
      mode_(mode),
      rows_(rows) {}

std::string SegmentBuilder::stem(const std::string& name, size_t number) {
  return fmt::format("{}.{:03}", name, number);
}

uint32_t SegmentBuilder::shard(const Shard& shard) {
  if (shards_.empty() || shards_.back().path != shard.path) {
    const auto file = source_.file_system->info(source_.root + "/" + shard.path, true);
    if (file) readers_.add(*file);
  }
  shards_.push_back(shard);
  covered_.push_back(shard.begin);
  return segment_.add_shard(shard);
}

uint32_t SegmentBuilder::codecs(std::span<const Codec> chain) {
  const auto same = [&](const std::vector<Codec>& known) {
    return std::equal(known.begin(), known.end(), chain.begin(), chain.end());
  };
  const auto known = std::find_if(chains_.begin(), chains_.end(), same);
  const auto number = static_cast<uint32_t>(known - chains_.begin());
  if (known == chains_.end()) chains_.emplace_back(chain.begin(), chain.end());
  return number;
}

uint32_t SegmentBuilder::block(const Block& block) {
  if (block.decoded_length > decoded_limit(chains_.at(block.codecs), block.stored_length)) {
    throw Error(ErrorKind::corrupt,
                fmt::format("block at offset {}: {} bytes cannot decode to {}", block.offset,
                            block.stored_length, block.decoded_length));
  }
  blocks_.push_back(block);
  return static_cast<uint32_t>(blocks_.size() - 1);
}

Extent SegmentBuilder::localised(Extent extent) {
  if (extent.container != Container::block) return extent;
  const auto [known, is_new] = local_blocks_.try_emplace(extent.number, 0);
  if (is_new) {
    Block block = blocks_.at(extent.number);
    block.codecs = segment_.add_codecs(chains_.at(block.codecs));
    known->second = segment_.add_block(block);
  }
  extent.number = known->second;
  return extent;
}

void SegmentBuilder::add_ranges(const Extent& extent, std::span<const Extent> pieces,
                                std::vector<Range>& ranges) {
  if (extent.container == Container::pieces) {
    for (const Extent& piece : pieces) add_ranges(piece, {}, ranges);
  } else if (extent.container == Container::shard) {
    ranges.push_back({extent.number, extent.offset, extent.offset + extent.length});
  } else if (extent.container == Container::block) {
    const Block& block = blocks_.at(extent.number);
    ranges.push_back({block.shard, block.offset, block.offset + block.stored_length});
  }
}

void SegmentBuilder::make_room(std::span<const Range> ranges) {
  // So many that hardly a shard has more, and that memory does not suffer.
  constexpr uint64_t kMaxScattered = 32 * SegmentWriter::kMaxSamples;
  const auto behind = [&](const Range& range) { return range.begin >= covered_.at(range.shard); };
  uint64_t bytes = 0;
  for (size_t i = 0; i < shards_.size(); ++i) bytes += covered_[i] - shards_[i].begin;
  const bool full =
      segment_.samples() >= SegmentWriter::kMaxSamples || bytes >= SegmentWriter::kMaxBytes;
  if (shards_.empty() || !full) return;
  // Each segment has the whole of a view: better one.
  const bool has_view = std::any_of(shards_.begin(), shards_.end(), [](const Shard& shard) {
    return shard.compression == Compression::tiled;
  });
  const bool in_order =
      !scattered_ && !has_view && std::all_of(ranges.begin(), ranges.end(), behind);
  if (!in_order && segment_.samples() < kMaxScattered) return;
  // A segment whose samples lie anywhere covers no bytes: the last one then covers them all.
  scattered_ = !in_order;
  for (size_t i = 0; i < shards_.size(); ++i) {
    segment_.shards()[i].end = scattered_ ? shards_[i].begin : covered_[i];
  }
  close();
  for (size_t i = 0; i < shards_.size(); ++i) {
    if (!scattered_) shards_[i].begin = covered_[i];
    segment_.add_shard(shards_[i]);
  }
}

void SegmentBuilder::sample(std::string_view key, std::span<const FoundField> fields) {
  if (fields.empty() && !takes_empty_rows) {
    Fault fault;
    if (!shards_.empty()) fault.shard = shards_.back().path;
    fault.sample = key;
    fault.cause = "has no fields";
    return segment_.add_fault(std::move(fault));
  }
  if (options_.progress != nullptr) {
    if (options_.depth == Depth::structure || !shards_.empty()) ++options_.progress->samples;
  }
  check_stop();
  ranges_.clear();
  for (const FoundField& field : fields) add_ranges(field.extent, field.pieces, ranges_);
  make_room(ranges_);
  for (const Range& range : ranges_) {
    covered_.at(range.shard) = std::max(covered_[range.shard], range.end);
  }
  // Only those in blocks need other numbers.
  std::vector<FoundField> found;
  std::vector<std::vector<Extent>> pieces;
  const auto in_blocks = [](const FoundField& field) {
    return field.extent.container == Container::block ||
           field.extent.container == Container::pieces;
  };
  if (std::any_of(fields.begin(), fields.end(), in_blocks)) {
    found.assign(fields.begin(), fields.end());
    pieces.resize(fields.size());
    for (size_t i = 0; i < found.size(); ++i) {
      found[i].extent = localised(found[i].extent);
      for (const Extent& piece : found[i].pieces) pieces[i].push_back(localised(piece));
      found[i].pieces = pieces[i];
    }
    fields = found;
  }
  for (std::string& conflict : segment_.add_sample(key, fields)) {
    Fault fault;
    fault.shard = shards_.empty() ? std::string(key) : shards_.back().path;
    if (!ranges_.empty()) {
      fault.shard = shards_[ranges_.front().shard].path;
      fault.offset = ranges_.front().begin;
    }
    fault.sample = key;
    fault.cause = std::move(conflict);
    segment_.add_fault(std::move(fault));
  }
}

void SegmentBuilder::stated(const StatedChecksum& checksum) {
  // That of a whole column is compared with the first of its rows.
  if (checksum.kind == ChecksumKind::crc32) return stated_.push_back(checksum);
  const Range range{checksum.shard, checksum.offset, checksum.offset + checksum.length};
  make_room({&range, 1});
  covered_.at(range.shard) = std::max(covered_[range.shard], range.end);
  stated_.push_back(checksum);
  // The record of a sample that was left out holds nothing of the one before.
  const bool of_sample = segment_.samples() > 0 && !ranges_.empty() &&
                         ranges_.front().shard == range.shard &&
                         ranges_.front().begin >= range.begin && ranges_.front().end <= range.end;
  if (of_sample) {
    segment_.set_stated(
        {Container::shard, checksum.shard, checksum.offset, checksum.length, checksum.crc});
  }
}

bool SegmentBuilder::same_field(const Segment& earlier, uint64_t sample, uint32_t field) {
  const Located was = earlier.locate(sample, field);
  if (was.present != segment_.present(sample, field)) return false;
  if (!was.present) return true;
  if (!segment_.has_extents(field)) return was.scalar == segment_.scalar(sample, field);
  const Extent& is = segment_.extent(sample, field);
  if (was.extent.container != is.container || was.extent.length != is.length) return false;
  if (is.container == Container::here) {
    std::string bytes(is.length, '\0');
    earlier.read_here(was.extent.offset, std::as_writable_bytes(std::span(bytes)));
    return bytes == segment_.here_bytes(is);
  }
  // The offset of a whole file is its time of modification.
  return was.extent.offset == is.offset &&
         earlier.fields()[field].suffixes.at(was.suffix) ==
             segment_.fields()[field].suffixes.at(segment_.suffix(sample, field));
}

bool SegmentBuilder::completed_before(const std::string& path) {
  if (!shards_.empty() || !fs::exists(path)) return false;
  try {
    const Segment earlier(path);
    earlier.verify_all();
    if (earlier.depth() != Depth::full || earlier.samples() != segment_.samples() ||
        earlier.fields().size() != segment_.fields().size()) {
      return false;
    }
    for (uint32_t f = 0; f < segment_.fields().size(); ++f) {
      if (earlier.fields()[f].name != segment_.fields()[f].name) return false;
      for (uint64_t i = 0; i < segment_.samples(); ++i) {
        if (earlier.key(i) != segment_.key(i) || !same_field(earlier, i, f)) return false;
      }
    }
    return true;
  } catch (const Error&) {
    return false;  // damaged: it is made anew
  }
}

SegmentEntry SegmentBuilder::complete(SegmentWriter& segment,
                                      std::span<const StatedChecksum> stated,
                                      const std::string& stem, Depth depth, const Access& access) {
  if (depth != Depth::full) return segment.write(directory_, stem, depth, access);
  const bool with_rows = rows_ != nullptr && photo_field(segment.fields());
  Progress before;
  before.whole = options_.progress;
  complete_segment(segment, source_, stated, threads_, with_rows ? &before : options_.progress);
  SegmentEntry entry = segment.write(directory_, stem, depth, access);
  if (with_rows) make_row_indexes(*rows_, entry, {before.samples, before.bytes});
  return entry;
}

void SegmentBuilder::close() {
  wait();
  Depth depth = options_.depth;
  if (options_.verify_stated && !stated_.empty()) depth = Depth::full;
  const std::string stem = this->stem(name_, entries.size());
  std::string complete;
  for (const std::string& name : segments_named(there_, stem)) {
    const std::string path = directory_ + "/" + name;
    if (completed_before(path)) complete = path;
  }
  if (!complete.empty()) {
    ++reused;
    set_access(complete, readers_.like(mode_));
    set_access(row_index_path(complete), readers_.like(mode_));
    const SegmentEntry& entry = entries.emplace_back(entry_of(complete, Segment(complete)));
    if (rows_ != nullptr) make_row_indexes(*rows_, entry, {entry.samples, entry.bytes});
  } else {
    auto work = [this, stem, depth, access = readers_.like(mode_), segment = std::move(segment_),
                 stated = std::move(stated_)]() mutable {
      return this->complete(segment, stated, stem, depth, access);
    };
    // The scan goes on meanwhile; one segment at a time bounds the memory.
    pending_ =
        std::async(threads_ > 1 ? std::launch::async : std::launch::deferred, std::move(work));
    entries.emplace_back();
  }
  segment_ = SegmentWriter();
  local_blocks_.clear();
  stated_.clear();
}

void SegmentBuilder::wait() {
  if (pending_.valid()) entries.back() = pending_.get();
}

void SegmentBuilder::finish() {
  for (size_t i = 0; i < shards_.size(); ++i) {
    if (shards_[i].compression != Compression::none) segment_.shards()[i].end = covered_[i];
  }
  close();
  wait();
}

SegmentEntry entry_of(const std::string& path, const Segment& segment) {
  SegmentEntry entry;
  entry.file = fs::path(path).filename().string();
  entry.samples = segment.samples();
  entry.header_crc = segment.header_crc();
  entry.faults = segment.faults().size();
  for (uint32_t i = 0; i < segment.shard_count(); ++i) {
    if (begins(segment.shard(i))) ++entry.shards;
  }
  for (uint32_t field = 0; field < segment.fields().size(); ++field) {
    if (segment.fields()[field].encoding == Encoding::none) continue;
    for (uint64_t sample = 0; sample < segment.samples(); ++sample) {
      const Extent extent = segment.locate(sample, field).extent;
      entry.bytes += extent.length;
      if (extent.container == Container::file) ++entry.shards;
    }
  }
  return entry;
}

namespace {

/// By path: the ranges of the files that segments describe.
using Ranges = std::map<std::string, std::vector<std::pair<uint64_t, uint64_t>>>;

/// Whether the ranges of each file are all of it, without a gap.
bool cover_all(Ranges& ranges, const std::map<std::string, FileInfo>& files) {
  for (const auto& [path, info] : files) {
    std::vector<std::pair<uint64_t, uint64_t>>& of_file = ranges[path];
    std::sort(of_file.begin(), of_file.end());
    uint64_t covered = 0;
    for (const auto& [begin, end] : of_file) {
      if (begin != covered) return false;
      covered = end;
    }
    if (covered != info.size) return false;
  }
  return true;
}

/// The segment at `path` if all that it describes is as it was; adds the ranges.
std::optional<SegmentEntry> still_right(const std::string& path,
                                        const std::map<std::string, FileInfo>& files, Depth depth,
                                        Ranges& ranges) {
  if (!fs::exists(path)) return std::nullopt;
  try {
    const Segment segment(path);
    segment.verify_all();
    if (segment.shard_count() == 0 || segment.depth() < depth) return std::nullopt;
    // What the system could not read then may be readable now.
    if (count_transient(segment.faults()) > 0) return std::nullopt;
    Ranges more = ranges;
    for (uint32_t i = 0; i < segment.shard_count(); ++i) {
      const Shard shard = segment.shard(i);
      const auto now = files.find(shard.path);
      if (now == files.end()) return std::nullopt;
      // `pack` records no time: its checksums say what the bytes should be, and `check` compares.
      const bool same_time = shard.modified_ns == 0 ? segment.depth() == Depth::full
                                                    : shard.modified_ns == now->second.modified_ns;
      if (shard.size != now->second.size || !same_time || shard.compression != Compression::none) {
        return std::nullopt;
      }
      more[shard.path].emplace_back(shard.begin, shard.end);
    }
    ranges = std::move(more);
    return entry_of(path, segment);
  } catch (const Error&) {
    return std::nullopt;  // damaged: it is made anew
  }
}

}  // namespace

std::optional<std::vector<SegmentEntry>> reusable_segments(const Source& source, const Part& part,
                                                           const std::string& directory,
                                                           const std::set<std::string>& there,
                                                           const std::string& name, Depth depth,
                                                           uint32_t mode) {
  if (part.shard.empty()) return std::nullopt;
  std::map<std::string, FileInfo> files;
  Readers readers;
  std::vector<std::string> paths = part.beside;
  paths.push_back(part.shard);
  for (const std::string& path : paths) {
    const std::optional<FileInfo> now = source.file_system->info(source.root + "/" + path, true);
    if (!now) return std::nullopt;
    files[path] = *now;
    readers.add(*now);
  }
  std::vector<SegmentEntry> entries;
  Ranges ranges;
  do {
    std::optional<SegmentEntry> found;
    for (const std::string& file :
         segments_named(there, SegmentBuilder::stem(name, entries.size()))) {
      if (found) break;
      found = still_right(directory + "/" + file, files, depth, ranges);
    }
    if (!found) return std::nullopt;
    entries.push_back(std::move(*found));
  } while (!cover_all(ranges, files));
  for (const SegmentEntry& entry : entries) {
    for (const std::string& file : {entry.file, row_index_path(entry.file)}) {
      set_access(directory + "/" + file, readers.like(mode));
    }
  }
  return entries;
}

std::string segment_name(const std::string& shard) {
  std::string name = percent_escape(shard, "/");
  constexpr size_t kLongest = 200;  // names end at 255, and others are added to this one
  if (name.size() > kLongest || !is_utf8(name)) name = fmt::format("{:016x}", hash64(name));
  return name;
}

std::set<std::string> names_in(const std::string& directory) {
  std::set<std::string> names;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(directory, missing)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

std::vector<std::string> segments_named(const std::set<std::string>& names,
                                        const std::string& stem) {
  constexpr size_t kRest = std::string_view(".01234567.seg").size();
  std::vector<std::string> found;
  for (auto name = names.lower_bound(stem + "."); name != names.end(); ++name) {
    if (!name->starts_with(stem + ".")) break;
    if (name->size() == stem.size() + kRest && name->ends_with(".seg")) found.push_back(*name);
  }
  return found;
}

}  // namespace stoker
