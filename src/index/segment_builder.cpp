// SPDX-License-Identifier: Apache-2.0
#include "index/segment_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "dataset/segment.h"
#include "index/full_pass.h"

namespace stoker {
namespace fs = std::filesystem;

SegmentBuilder::SegmentBuilder(const Source& source, std::string directory, std::string name,
                               const std::set<std::string>& there, const IndexOptions& options,
                               unsigned threads, uint32_t add_mode)
    : source_(source),
      directory_(std::move(directory)),
      name_(std::move(name)),
      there_(there),
      options_(options),
      threads_(threads),
      add_mode_(add_mode) {}

std::string SegmentBuilder::stem(const std::string& name, size_t number) {
  return fmt::format("{}.{:03}", name, number);
}

uint32_t SegmentBuilder::shard(const Shard& shard) {
  shard_ = shard;
  covered_ = 0;
  return segment_.add_shard(shard);
}

void SegmentBuilder::make_room(uint64_t offset) {
  const bool full = segment_.samples() >= SegmentWriter::kMaxSamples ||
                    (shard_ && covered_ - shard_->begin >= SegmentWriter::kMaxBytes);
  if (!full || !shard_ || offset < covered_) return;
  segment_.shards().front().end = covered_;
  close();
  shard_->begin = covered_;
  segment_.add_shard(*shard_);
}

void SegmentBuilder::sample(std::string_view key, std::span<const FoundField> fields) {
  if (options_.progress != nullptr) {
    if (options_.depth == Depth::structure || shard_) ++options_.progress->samples;
    options_.progress->check_stop();
  }
  uint64_t first = std::numeric_limits<uint64_t>::max();
  uint64_t end = 0;
  for (const FoundField& field : fields) {
    if (field.extent.container != Container::shard) continue;
    first = std::min(first, field.extent.offset);
    end = std::max(end, field.extent.offset + field.extent.length);
  }
  make_room(first);
  covered_ = std::max(covered_, end);
  for (std::string& conflict : segment_.add_sample(key, fields)) {
    Fault fault;
    fault.shard = shard_ ? shard_->path : std::string(key);
    if (first != std::numeric_limits<uint64_t>::max()) fault.offset = first;
    fault.sample = key;
    fault.cause = std::move(conflict);
    segment_.add_fault(std::move(fault));
  }
}

void SegmentBuilder::stated(const StatedChecksum& checksum) {
  make_room(checksum.offset);
  covered_ = std::max(covered_, checksum.offset + checksum.length);
  stated_.push_back(checksum);
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
  if (shard_ || !fs::exists(path)) return false;
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
    entries.push_back(entry_of(complete, Segment(complete)));
  } else {
    auto work = [this, stem, depth, segment = std::move(segment_),
                 stated = std::move(stated_)]() mutable {
      if (depth == Depth::full) {
        complete_segment(segment, source_, stated, threads_, options_.progress);
      }
      return segment.write(directory_, stem, depth, add_mode_);
    };
    // The scan goes on meanwhile; one segment at a time bounds the memory.
    pending_ =
        std::async(threads_ > 1 ? std::launch::async : std::launch::deferred, std::move(work));
    entries.emplace_back();
  }
  segment_ = SegmentWriter();
  stated_.clear();
}

void SegmentBuilder::wait() {
  if (pending_.valid()) entries.back() = pending_.get();
}

void SegmentBuilder::finish() {
  if (shard_ && shard_->compression != Compression::none) {
    segment_.shards().front().end = covered_;
  }
  close();
  wait();
}

SegmentEntry entry_of(const std::string& path, const Segment& segment) {
  SegmentEntry entry;
  entry.file = fs::path(path).filename().string();
  entry.samples = segment.samples();
  entry.header_crc = segment.header_crc();
  for (uint32_t i = 0; i < segment.shard_count(); ++i) {
    if (segment.shard(i).begin == 0) ++entry.shards;
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

/// Whether the segment at `path` still describes the file from offset `begin` on.
std::optional<SegmentEntry> still_right(const std::string& path, const std::string& shard_path,
                                        const FileInfo& now, uint64_t begin, Depth depth,
                                        uint64_t& end) {
  if (!fs::exists(path)) return std::nullopt;
  try {
    const Segment segment(path);
    segment.verify_all();
    if (segment.shard_count() != 1 || segment.depth() < depth) return std::nullopt;
    const Shard shard = segment.shard(0);
    // `pack` records no time: its checksums say what the bytes should be, and `check` compares.
    const bool same_time = shard.modified_ns == 0 ? segment.depth() == Depth::full
                                                  : shard.modified_ns == now.modified_ns;
    if (shard.path != shard_path || shard.size != now.size || !same_time || shard.begin != begin ||
        shard.compression != Compression::none) {
      return std::nullopt;
    }
    end = shard.end;
    return entry_of(path, segment);
  } catch (const Error&) {
    return std::nullopt;  // damaged: it is made anew
  }
}

}  // namespace

std::optional<std::vector<SegmentEntry>> reusable_segments(const Source& source, const Part& part,
                                                           const std::string& directory,
                                                           const std::set<std::string>& there,
                                                           const std::string& name, Depth depth) {
  if (part.shard.empty()) return std::nullopt;
  const std::optional<FileInfo> now =
      source.file_system->info(source.root + "/" + part.shard, true);
  if (!now) return std::nullopt;
  std::vector<SegmentEntry> entries;
  uint64_t covered = 0;
  do {
    std::optional<SegmentEntry> found;
    for (const std::string& file :
         segments_named(there, SegmentBuilder::stem(name, entries.size()))) {
      if (found) break;
      found = still_right(directory + "/" + file, part.shard, *now, covered, depth, covered);
    }
    if (!found) return std::nullopt;
    entries.push_back(std::move(*found));
  } while (covered < now->size);
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
