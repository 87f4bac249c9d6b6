// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "dataset/index.h"
#include "dataset/scan.h"
#include "format/format.h"
#include "pack/out_sample.h"
#include "pack/pack.h"

namespace stoker {

// Which sample goes to which shard is settled before the first shard is written, and kept in a
// file: so any number of processes, at any time, agree on it. The plan is a directory:
//
//   source/     index of the source as it was when it was planned
//   order-K     sample numbers of dataset K in the order they are written, u64 each
//   plan.json   options, and the shards as ranges of order-K; written last

struct PlannedShard {
  std::string name;
  uint64_t first = 0, last = 0;  // of the order
  uint64_t bytes = 0;            // at most
  uint32_t order_crc = 0;
};

/// One dataset to be written: the whole, or one split.
struct PlannedDataset {
  std::string directory;  // relative to the destination; empty: the destination itself
  std::vector<PlannedShard> shards;
};

struct Plan {
  Json options;  // what decides the result; see options_of()
  std::string source_format;
  std::vector<PlannedDataset> datasets;
  uint64_t fingerprint = 0;  // of the source; see fingerprint_of()
  uint64_t filtered = 0;
  uint64_t hidden = 0, unlisted = 0;
  std::vector<std::string> unused;   // what the source holds and nothing reads; see Layout
  std::vector<Fault> left_out;       // what the scan could not take in, and duplicate keys
  std::vector<std::string> endings;  // of the files of a shard, behind its name
  std::vector<std::string> lossy;    // fields that the format cannot store, and why

  void write(const std::string& directory, const Access& access) const;
  /// Reads what write() left; nothing where there is no complete plan.
  static std::optional<Plan> read(const std::string& directory);
  /// The file that the order of a dataset's samples is in.
  static std::string order_path(const std::string& directory, size_t dataset);
  /// The samples of one shard.
  static std::vector<uint64_t> order(const std::string& directory, size_t dataset,
                                     const PlannedShard& shard);
};

/// What follows a shard's name in the names of its files; an empty one where it is one file.
std::vector<std::string> endings_of(const WriteFormat& write, const OutSchema& schema);

/// What to say about a plan that cannot be read.
std::string damaged_plan(const std::string& path, std::string_view why);

/// The options that decide the result, as they stand in plan and manifest. `jobs` is not among
/// them.
Json options_of(const std::string& source_name, const std::string& inner,
                const PackOptions& options);

/// Changes when a sample of the source is added, removed, renamed, moved within its file or gets
/// another size; with times also when a file was modified.
uint64_t fingerprint_of(const Index& source, bool with_times);

/// How the source becomes what is written: the same for whoever goes on with a plan.
Conversion conversion_of(const Index& source, const WriteFormat& write, const PackOptions& options);

/// Scans the source and settles the plan in `directory`. `source_index` is where the source has an
/// index of its own, or empty. Throws Error(unsupported) where the format cannot store all fields,
/// unless the options accept that.
Plan make_plan(const Source& source, const Detected& detected, const WriteFormat& write,
               const std::string& source_name, const std::string& source_index,
               const std::string& directory, const PackOptions& options);

}  // namespace stoker
