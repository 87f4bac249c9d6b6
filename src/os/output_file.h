// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"

namespace stoker {

/// The permission bits of a new file or directory: as the umask gives them, changed by this.
struct Access {
  Access(uint32_t added = 0) : add(added) {}  // NOLINT(google-explicit-constructor)

  uint32_t add = 0;      // given whatever the umask says
  uint32_t keep = 0777;  // and none but these
  int64_t group = -1;    // whom the bits of the group are for; -1: the group that the file has
};

/// A file that appears under its name only when it is whole: written beside it under a hidden
/// temporary name, synced, then renamed. Without commit() nothing is left behind.
class OutputFile {
 public:
  explicit OutputFile(std::string path, const Access& access = {});
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(Bytes bytes);
  /// Replaces bytes that were written before.
  void write_at(uint64_t offset, Bytes bytes);
  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  /// Syncs, renames, syncs the directory.
  void commit();

  /// The name a file has until commit().
  static std::string temporary_name(const std::string& path);

 private:
  /// Whether another process has begun to write the same, and taken the temporary name.
  bool is_taken() const;

  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

/// Writes `contents` to `path` the same way.
void write_file(const std::string& path, Bytes contents, const Access& access = {});
/// Gives a file or directory of ours that exists the permission bits of a new one; those of others,
/// and what links lead to, stay as they are.
void set_access(const std::string& path, const Access& access);
/// All of a file that is not expected to be large; Error(corrupt) above `limit` bytes.
std::string read_file(const std::string& path, uint64_t limit);
/// Like mkdir -p; permission bits of new directories as the umask gives them, plus `add_mode`.
void make_directories(const std::string& path, uint32_t add_mode = 0);
void sync_directory(const std::string& path);
/// Bytes that an ordinary user can still write at `path`.
uint64_t free_space(const std::string& path);

}  // namespace stoker
