// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/progress.h"
#include "dataset/scan.h"
#include "index/row_indexes.h"

namespace stoker {

using Shares = std::vector<std::pair<std::string, double>>;

/// "train=0.9,val=0.1": names that can be directories, shares that sum to 1. Throws Error(usage).
Shares parse_split(std::string_view text);

/// Bytes of what shards are named after; numbers, endings and more come to it.
inline constexpr size_t kLongestShardName = 180;

/// Every `of`-th shard of a plan, from number `number` on.
struct PackPart {
  uint64_t number = 1;  // from 1 to `of`
  uint64_t of = 1;
};

struct PackOptions {
  std::string to = "tar";
  uint64_t shard_size = 1'000'000'000;
  unsigned jobs = 0;                          // 0: one per usable core
  std::optional<uint64_t> shuffle;            // seed
  Shares split;                               // name, share; empty: no split
  std::vector<std::string> include, exclude;  // globs over keys and file names
  std::optional<uint64_t> limit;              // samples, counted after the filters
  bool overwrite = false;
  bool lossy = false;     // leave out fields that the format cannot store
  std::string compress;   // one of WriteFormat::compressions; empty: stored as it is
  bool skip_bad = false;  // leave out what cannot be read and still call it a success
  std::string list;       // see Source::list
  std::optional<uint32_t> row_index = 0;  // as for IndexOptions; decides nothing about the shards
  /// Tries again what an earlier, complete run could not read for the moment; writes its shards
  /// anew.
  bool retry_transient = true;
  bool plan_only = false;  // settle which sample goes where, and write nothing yet
  /// Writes only this part of a plan that is there, beside others who write theirs. The dataset is
  /// complete when pack() has run without it.
  std::optional<PackPart> part;
  Progress* progress = nullptr;
};

struct PackResult {
  std::string source_format, format;
  uint64_t samples = 0, shards = 0;
  uint64_t bytes = 0;          // of all shards
  uint64_t payload_bytes = 0;  // of the fields
  uint64_t shards_reused = 0;  // finished by an earlier, interrupted run
  bool already_complete = false;
  /// Faults of an earlier, complete run that may be gone: what they concern was tried again.
  uint64_t retried = 0;
  bool unfinished = false;          // a plan or a part of it: no dataset yet
  uint64_t filtered = 0;            // samples that --include, --exclude and --limit kept out
  uint64_t hidden = 0;              // files whose name begins with a dot
  uint64_t unlisted = 0;            // files that the list does not name
  std::vector<std::string> unused;  // what the source holds and is not read; see Layout
  /// What was left out because it could not be read: never silently.
  std::vector<Fault> left_out;
  /// Fields that the format cannot store, and why.
  std::vector<std::string> lossy;
  RowIndexSummary row_index;          // of the shards that were written, or are there
  std::vector<std::string> datasets;  // directories written: one, or one per split
  double seconds = 0;
};

/// The destination has no room for the shards.
class NoRoom : public Error {
 public:
  NoRoom(const std::string& destination, uint64_t needed, uint64_t free);
  uint64_t needed() const { return needed_; }
  uint64_t free() const { return free_; }

 private:
  uint64_t needed_, free_;
};

/// Turns the dataset at `source` into shards in the directory `destination`. May be killed at any
/// moment and run again: it goes on, and the result is that of an undisturbed run, byte for byte,
/// for any number of jobs.
PackResult pack(const std::string& source, const std::string& destination,
                const PackOptions& options);

/// What pack() with these options would find done: a complete pack of the source as it is now.
/// Nothing where it would do anything; nothing is written.
std::optional<PackResult> packed_already(const std::string& source, const std::string& destination,
                                         const PackOptions& options);

/// How far those who write the parts of a plan have come.
void count_packed(const std::string& destination, Progress& progress);

}  // namespace stoker
