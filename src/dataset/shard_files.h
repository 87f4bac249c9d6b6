// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
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

/// A copy of the shards that is nearer, or becomes one while it is read from.
struct StagedRoot {
  std::string data;      // what paths of shards are relative to; each is there whole, or not at all
  std::string arrivals;  // a directory whose time of change moves when one has arrived
};

/// Opens shards when they are first read, checks that they are those that were indexed, and keeps
/// a bounded number open: `limit` of each reader, and a third of what the process may open of all.
/// Safe from many threads.
class ShardFiles {
 public:
  /// Each path is looked for under the roots in turn (a staged copy first, say).
  ShardFiles(FileSystem& file_system, std::vector<std::string> roots, size_t limit,
             const ViewLimits& views, std::optional<StagedRoot> staged = std::nullopt);

  ~ShardFiles();
  ShardFiles(const ShardFiles&) = delete;
  ShardFiles& operator=(const ShardFiles&) = delete;

  /// Throws Error(not_found) for a vanished shard, Error(corrupt) for one that has changed.
  std::shared_ptr<ReadableFile> open(const Segment& segment, uint32_t number);
  /// The same for a small file that is read once: not kept.
  std::unique_ptr<ReadableFile> open_once(const std::string& path, const ExpectedFile& expected,
                                          Links links = Links::inside);
  /// Whether the times of a shard say that nobody has written to it since it was indexed; if not, a
  /// value that the index holds has to be compared with its bytes. Throws as open() does, and
  /// looks at the file as look() does.
  bool untouched(const Segment& segment, uint32_t number);
  /// The same for a file of which the index recorded `modified_ns`, or that was written
  /// no later than `until_ns`. Opens nothing.
  bool untouched(const std::string& path, const ExpectedFile& expected, int64_t modified_ns,
                 int64_t until_ns = 0);
  /// What a shard is now. One that is another file than the one that was opened, or was written to
  /// since then, is opened again. Nothing where a staged copy is read instead. Throws as open().
  std::optional<FileInfo> look(const Segment& segment, uint32_t number);
  /// How many times a shard was opened again and was another file than before, or had been written
  /// to: what was decoded before is not what is there now.
  uint64_t changes() const { return changes_.load(std::memory_order_acquire); }

 private:
  struct Kept {
    std::string path;
    std::string name;      // the path, unless it is a view
    std::string views_of;  // of a view: what its file and segment are
    std::shared_ptr<ReadableFile> file;
    uint64_t news = 0;  // what had arrived when the copy was looked for
    bool staged = false;
  };
  using Place = std::list<Kept>::iterator;

  /// Throws where a shard that was indexed has lost its end, and says what is missing.
  void refuse_truncated(const Segment& segment, uint32_t number, const Shard& shard);
  /// Throws where this is not the file that was indexed.
  static void check(const std::string& whole, const FileInfo& info, const ExpectedFile& expected);
  void forget(Place place);
  /// Another number whenever shards have arrived; looks once a second.
  uint64_t news();
  /// Null where the copy does not have it, or not whole.
  std::unique_ptr<ReadableFile> open_staged(const std::string& path, const ExpectedFile& expected);
  void keep(Kept kept);
  /// Whether the file at `path` is the one that was opened last, as it was then. If not, whatever
  /// is open of it is closed.
  bool is_as_seen(const std::string& path, const std::optional<FileInfo>& now);
  bool is_staged(const std::string& path);
  /// Remembers what a shard was when it was opened.
  void see(const std::string& path, const FileInfo& info);

  FileSystem& file_system_;
  std::vector<std::string> roots_;
  std::vector<std::unique_ptr<FilesBeneath>> beneath_;  // as roots_
  std::unique_ptr<FilesBeneath> beneath_staged_;        // where there is a copy
  size_t limit_;
  ViewLimits views_;
  std::optional<StagedRoot> staged_;
  std::atomic<int64_t> looked_ns_{0};
  std::atomic<uint64_t> news_{0};
  std::atomic<uint64_t> changes_{0};
  std::mutex mutex_;
  std::unordered_map<std::string, FileInfo> seen_;  // by path: the source's, when opened last
  std::list<Kept> kept_;                            // most recently used first
  std::unordered_map<std::string, Place> by_name_;
  /// By path: the size of a shard that lost its end, and what is missing; counted once.
  std::unordered_map<std::string, std::pair<uint64_t, std::string>> truncated_;
};

}  // namespace stoker
