// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <future>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "dataset/manifest.h"
#include "dataset/scan.h"
#include "dataset/segment_writer.h"
#include "format/format.h"
#include "index/build_index.h"
#include "os/readers.h"

namespace stoker {

/// Turns what a scan of one part finds into segments: one, or several for a large shard.
class SegmentBuilder final : public ScanSink {
 public:
  /// Segments go to `directory` as NAME.000.CRC.seg, NAME.001.CRC.seg, …; `there` are the names of
  /// the files in it. Photos of full segments get the row indexes of `rows`, where given. `mode` is
  /// that of the directory that the data is in: see Readers.
  SegmentBuilder(const Source& source, std::string directory, std::string name,
                 const std::set<std::string>& there, const IndexOptions& options, unsigned threads,
                 uint32_t mode, const RowIndexWork* rows = nullptr);

  uint32_t shard(const Shard& shard) override;
  uint32_t codecs(std::span<const Codec> chain) override;
  uint32_t block(const Block& block) override;
  void sample(std::string_view key, std::span<const FoundField> fields) override;
  void stated(const StatedChecksum& checksum) override;
  void fault(Fault fault) override { segment_.add_fault(std::move(fault)); }
  void check_stop() override {
    if (options_.progress != nullptr) options_.progress->check_stop();
  }
  void whole_file(const FileInfo& file) override { readers_.add(file); }
  void hidden(uint64_t) override { ++hidden_names; }
  unsigned threads() const override { return threads_; }
  bool takes_views() const override { return options_.views; }

  /// Whether a sample without fields is one; a fault where not. See Layout::table.
  bool takes_empty_rows = false;

  /// Writes what is left; the entries are then complete.
  void finish();
  std::vector<SegmentEntry> entries;
  uint64_t hidden_names = 0;
  uint64_t reused = 0;  // segments of files that an earlier run had completed

  static std::string stem(const std::string& name, size_t number);

 private:
  /// A range of a shard.
  struct Range {
    uint32_t shard = 0;
    uint64_t begin = 0, end = 0;
  };
  /// What of the shards an extent takes up.
  void add_ranges(const Extent& extent, std::span<const Extent> pieces, std::vector<Range>& ranges);
  /// Begins a new segment when the current one is full and the ranges lie behind all of it; or when
  /// it is so full that it has to be, wherever they lie.
  void make_room(std::span<const Range> ranges);
  /// The extent with the number that its block has in the current segment.
  Extent localised(Extent extent);
  void close();
  SegmentEntry complete(SegmentWriter& segment, std::span<const StatedChecksum> stated,
                        const std::string& stem, Depth depth, const Access& access);
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
  uint32_t mode_;
  const RowIndexWork* rows_;
  Readers readers_;  // of all that was found so far
  SegmentWriter segment_;
  std::vector<StatedChecksum> stated_;
  std::vector<Shard> shards_;      // begin: of what the current segment covers
  std::vector<uint64_t> covered_;  // by shard: end of what lies furthest back in it so far
  std::vector<Block> blocks_;      // all that the scan has announced
  std::vector<std::vector<Codec>> chains_;
  std::unordered_map<uint32_t, uint32_t> local_blocks_;  // those that the current segment has
  std::vector<Range> ranges_;                            // of one sample
  bool scattered_ = false;             // samples do not lie in the order of the bytes
  std::future<SegmentEntry> pending_;  // the last of `entries`
};

/// Segments of an earlier run that still describe the part, complete and verified; nothing
/// otherwise.
std::optional<std::vector<SegmentEntry>> reusable_segments(const Source& source, const Part& part,
                                                           const std::string& directory,
                                                           const std::set<std::string>& there,
                                                           const std::string& name, Depth depth,
                                                           uint32_t mode);

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
