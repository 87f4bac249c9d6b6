// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "os/file_system.h"

namespace stoker {

/// Files in memory, for tests: counts what is read and fails where it is told to. Directories
/// exist as soon as something lies in them. Reading is safe from many threads, changing is not.
class FakeFileSystem final : public FileSystem {
 public:
  void add_file(const std::string& path, std::string contents, int64_t modified_ns = 1);
  void add_directory(const std::string& path);
  /// `target` as a path of this file system, or relative to the link's directory.
  void add_link(const std::string& path, const std::string& target);
  /// A socket, a fifo, a device.
  void add_other(const std::string& path);
  void remove(const std::string& path);

  /// open() and list() of the path fail with this errno; EACCES shows in info(), too.
  void fail_open(const std::string& path, int os_error);
  /// Reads that touch the byte at `offset` fail with this errno; others succeed.
  void fail_read(const std::string& path, uint64_t offset, int os_error);
  /// Reads end at `offset` although info() gives the whole size: a file that somebody truncates
  /// while it is being read.
  void end_reads_at(const std::string& path, uint64_t offset);
  /// list() gives entries without their kind, as some file systems do.
  void hide_kinds() { hide_kinds_ = true; }

  /// Calls of read_at(), and the bytes they returned, of open() and info(), since the last
  /// reset_counts().
  uint64_t reads() const { return counts_->reads; }
  uint64_t bytes_read() const { return counts_->bytes; }
  uint64_t opens() const { return counts_->opens; }
  uint64_t infos() const { return counts_->infos; }
  void reset_counts();

  std::unique_ptr<ReadableFile> open(const std::string& path) override;
  std::optional<FileInfo> info(const std::string& path, bool follow_links) override;
  using FileSystem::list;
  void list(const std::string& directory, const EachEntry& each) override;

 private:
  friend class FakeFile;
  struct Counts {
    std::atomic<uint64_t> reads{0}, bytes{0}, opens{0}, infos{0};
  };
  struct Entry {
    FileInfo info;
    std::string contents;  // of a link: where it leads
    int open_error = 0;
    int read_error = 0;
    uint64_t bad_offset = 0;
    uint64_t reads_end = ~uint64_t{0};
  };

  Entry& add(const std::string& path, FileKind kind);
  /// Null where there is nothing.
  std::shared_ptr<Entry> find(const std::string& path, bool follow_links) const;
  std::shared_ptr<Entry> find_or_throw(const std::string& path, const char* what) const;

  std::map<std::string, std::shared_ptr<Entry>> entries_;  // paths without a '/' too many
  std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
  uint64_t next_inode_ = 1;
  bool hide_kinds_ = false;
};

}  // namespace stoker
