// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <future>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "dataset/manifest.h"
#include "dataset/scan.h"
#include "dataset/segment_writer.h"
#include "format/format.h"
#include "index/build_index.h"

namespace stoker {

/// Turns what a scan of one part finds into segments: one, or several for a large shard.
class SegmentBuilder final : public ScanSink {
 public:
  /// Segments go to `directory` as NAME.000.CRC.seg, NAME.001.CRC.seg, …; `there` are the names of
  /// the files in it.
  SegmentBuilder(const Source& source, std::string directory, std::string name,
                 const std::set<std::string>& there, const IndexOptions& options, unsigned threads,
                 uint32_t add_mode);

  uint32_t shard(const Shard& shard) override;
  void sample(std::string_view key, std::span<const FoundField> fields) override;
  void stated(const StatedChecksum& checksum) override;
  void fault(Fault fault) override { segment_.add_fault(std::move(fault)); }
  void hidden(uint64_t) override { ++hidden_names; }
  unsigned threads() const override { return threads_; }

  /// Writes what is left; the entries are then complete.
  void finish();
  std::vector<SegmentEntry> entries;
  uint64_t hidden_names = 0;
  uint64_t reused = 0;  // segments of files that an earlier run had completed

  static std::string stem(const std::string& name, size_t number);

 private:
  /// Begins a new segment when the current one is full and nothing of it lies behind `offset`.
  void make_room(uint64_t offset);
  void close();
  /// Until the segment that is being written is complete.
  void wait();
  /// Whether an earlier run has left a full segment of exactly these files.
  bool completed_before(const std::string& path);
  bool same_field(const Segment& earlier, uint64_t sample, uint32_t field);

  const Source& source_;
  std::string directory_;
  std::string name_;
  const std::set<std::string>& there_;
  const IndexOptions& options_;
  unsigned threads_;
  uint32_t add_mode_;
  SegmentWriter segment_;
  std::vector<StatedChecksum> stated_;
  std::optional<Shard> shard_;
  std::future<SegmentEntry> pending_;  // the last of `entries`
  uint64_t covered_ = 0;               // end of what lies furthest back in the shard so far
};

/// Segments of an earlier run that still describe the part, complete and verified; nothing
/// otherwise.
std::optional<std::vector<SegmentEntry>> reusable_segments(const Source& source, const Part& part,
                                                           const std::string& directory,
                                                           const std::set<std::string>& there,
                                                           const std::string& name, Depth depth);

/// What the segments of a shard are named after: its path, where a file can be named so.
std::string segment_name(const std::string& shard);

/// Names of the files in a directory; none where it does not exist.
std::set<std::string> names_in(const std::string& directory);
/// Those of them that are segments with this stem: STEM.CRC.seg.
std::vector<std::string> segments_named(const std::set<std::string>& names,
                                        const std::string& stem);

/// What a manifest says about the segment at `path`.
SegmentEntry entry_of(const std::string& path, const Segment& segment);

}  // namespace stoker
