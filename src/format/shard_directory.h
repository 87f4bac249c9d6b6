// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "format/format.h"

namespace stoker {

// For formats whose shards lie side by side at the top of a directory.

struct ShardDirectory {
  std::vector<std::string> shards;  // files whose name says that they are shards, sorted
  std::vector<std::string> loose;   // other files, sorted; only so many as were asked for
  bool more_loose = false;          // there are others
  std::vector<Fault> faults;        // shards that are no files, or whose names say: unfinished
  uint64_t images = 0;              // files with an image's ending
  uint64_t other_files = 0;         // that are no shards by their name
  uint64_t hidden = 0;
  /// A sub-directory has something visible in it, and is none that describes data.
  bool deep = false;
};

/// Links are followed. Looks at names alone, where the file system gives the kinds with them.
ShardDirectory look_at_shards(const Source& source, bool (*is_shard)(std::string_view name),
                              size_t most_loose);

/// Whether files that do not describe shards outnumber them, of those in `loose`: a model beside
/// recordings is no dataset.
bool has_other_contents(const ShardDirectory& directory);

/// Shards `first` to `last` of a series are missing: "before00003after".
Fault missing_shards(std::string_view before, size_t digits, std::string_view after, uint64_t first,
                     uint64_t last);

/// A shard that a scan has begun.
struct OpenedShard {
  std::string path;
  std::unique_ptr<ReadableFile> file;  // decompressed
  uint64_t size = 0;                   // of the file as it lies there
  uint32_t number = 0;                 // from the sink
};

/// Opens the shard of a part and announces it to the sink.
OpenedShard open_shard(const Source& source, const Part& part, ScanSink& sink);

}  // namespace stoker
