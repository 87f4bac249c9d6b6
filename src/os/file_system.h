// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace stoker {

enum class FileKind : uint8_t { file, directory, link, other, unknown };

struct FileInfo {
  FileKind kind = FileKind::unknown;
  uint64_t size = 0;
  int64_t modified_ns = 0;
  uint32_t mode = 0;  // permission bits
  uint32_t group = 0;
  uint64_t device = 0, inode = 0;
  /// As owner, group and mode have it for this process; an access list may say otherwise.
  bool readable = true;
  int64_t changed_ns = 0;  // of the inode: set by whatever writes, copies or renames; 0: not known
};

struct DirectoryEntry {
  std::string name;
  FileKind kind = FileKind::unknown;  // of the entry itself; links are not followed
};

/// A file open for reading. Safe to use from many threads at once.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  /// Fills `into` from `offset`; returns fewer bytes than asked for only at the end of the file.
  virtual size_t read_at(uint64_t offset, MutableBytes into) = 0;
  /// The same into several buffers, one after the other.
  virtual size_t read_at(uint64_t offset, std::span<const MutableBytes> into) = 0;
  virtual FileInfo info() = 0;
};

/// Which links are followed where a name, that an index gave, is opened.
enum class Links : uint8_t {
  inside,   // those that stay below the directory, and trusted ones of a Hugging Face cache
  trusted,  // and those out of it that are ours or root's, or lead to a file that is no secret of
            // ours: one that the link's owner may read, or of a third user who lets others read it
};

/// A directory whose files are opened by names from an index. Whatever the names and links in it
/// say, nothing else is opened. Safe to use from many threads at once.
class FilesBeneath {
 public:
  virtual ~FilesBeneath() = default;
  /// Throws Error(permission) where a link leads out that is not followed, else as
  /// FileSystem::open().
  virtual std::unique_ptr<ReadableFile> open(const std::string& name, Links links) = 0;
};

/// Where data is read from. Tests put a fake in its place that counts reads and makes them fail.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual std::unique_ptr<ReadableFile> open(const std::string& path) = 0;
  /// The directory need not exist before the first open().
  virtual std::unique_ptr<FilesBeneath> beneath(const std::string& directory);
  /// Nothing where no such file exists; follows links when asked to.
  virtual std::optional<FileInfo> info(const std::string& path, bool follow_links) = 0;
  using EachEntry = std::function<void(std::string_view name, FileKind kind)>;
  /// Calls each() for every entry (see DirectoryEntry); unsorted, without "." and "..".
  virtual void list(const std::string& directory, const EachEntry& each) = 0;
  std::vector<DirectoryEntry> list(const std::string& directory);
};

FileSystem& real_file_system();

/// The real one, where files below `root` are opened as FilesBeneath does, with Links::trusted.
std::unique_ptr<FileSystem> file_system_beneath(const std::string& root);

/// Throws Error(corrupt) naming path and offset unless all of `into` could be filled.
void read_exactly(ReadableFile& file, const std::string& path, uint64_t offset, MutableBytes into);

}  // namespace stoker
