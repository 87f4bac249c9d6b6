// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "dataset/segment.h"
#include "dataset/tiled_file.h"
#include "os/file_system.h"

namespace stoker {

/// What a file must still be to be the one that was indexed.
struct ExpectedFile {
  uint64_t size = 0;
  int64_t modified_ns = 0;  // 0: not compared
};

/// Opens shards when they are first read, checks that they are those that were indexed, and keeps
/// a bounded number open. Safe from many threads.
class ShardFiles {
 public:
  /// Each path is looked for under the roots in turn (a staged copy first, say).
  ShardFiles(FileSystem& file_system, std::vector<std::string> roots, size_t limit,
             const ViewLimits& views);

  /// Throws Error(not_found) for a vanished shard, Error(corrupt) for one that has changed.
  std::shared_ptr<ReadableFile> open(const Segment& segment, uint32_t number);
  /// The same for a small file that is read once: not kept.
  std::unique_ptr<ReadableFile> open_once(const std::string& path, const ExpectedFile& expected);

 private:
  struct Kept {
    std::string name;
    std::string views_of;  // of a view: what its file and segment are
    std::shared_ptr<ReadableFile> file;
  };
  using Place = std::list<Kept>::iterator;

  void forget(Place place);

  FileSystem& file_system_;
  std::vector<std::string> roots_;
  size_t limit_;
  ViewLimits views_;
  std::mutex mutex_;
  std::list<Kept> kept_;  // most recently used first
  std::unordered_map<std::string, Place> by_name_;
};

}  // namespace stoker
