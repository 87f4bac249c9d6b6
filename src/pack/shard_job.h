// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/progress.h"
#include "dataset/manifest.h"
#include "dataset/reader.h"
#include "format/format.h"
#include "pack/out_sample.h"

namespace stoker {

/// One shard to be written.
struct ShardJob {
  const Reader* reader = nullptr;  // of the source, with fetch_inline and checksum
  const WriteFormat* write = nullptr;
  const Conversion* conversion = nullptr;
  std::vector<std::string> endings;  // of the shard's files, behind its name
  std::string directory;             // of the dataset that is written
  std::string name;                  // of the shard
  std::vector<uint64_t> samples;
  bool own_thread = false;  // for writing: there is a core that no other shard needs
  Progress* progress = nullptr;
};

/// The entry of a shard that an earlier run has finished; nothing where it has not. `there` are
/// the names of the files in the dataset's index.
std::optional<SegmentEntry> finished_shard(const std::string& directory,
                                           const std::set<std::string>& there,
                                           const std::string& name,
                                           const std::vector<std::string>& endings);

/// Writes the shard, then its segment of full depth. Samples that cannot be read are left out and
/// stand as faults in the segment.
SegmentEntry write_shard(const ShardJob& job);

}  // namespace stoker
