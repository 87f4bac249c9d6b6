// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/progress.h"
#include "dataset/index.h"
#include "os/file_system.h"

namespace stoker {

/// A shard of a dataset, as its index has it.
struct ShardToStage {
  std::string path;
  uint64_t size = 0;
  int64_t modified_ns = 0;
  /// Ranges without a gap with their checksums; empty where the index has none.
  struct Range {
    uint64_t begin = 0, end = 0;
    uint32_t crc = 0;
  };
  std::vector<Range> ranges;
  std::vector<uint32_t> segments;  // that describe it
};

/// In the order of their samples. Throws Error(corrupt) where the index contradicts itself.
std::vector<ShardToStage> shards_of(const Index& index);

struct ShardCopyOptions {
  unsigned threads = 1;
  Progress* progress = nullptr;
};

struct CopiedShard {
  uint32_t crc = 0;     // of all bytes
  bool matches = true;  // the index's checksums, where it has any
};

/// Copies a shard from below `root` to the open file `to`, which is new. Every byte is looked at
/// while it is in memory. On return the bytes are on the disk. Throws Error(corrupt) where the
/// shard is not the one that was indexed, or changes meanwhile.
CopiedShard copy_shard(FileSystem& file_system, const std::string& root, const ShardToStage& shard,
                       int to, const std::string& to_path, const ShardCopyOptions& options);

}  // namespace stoker
