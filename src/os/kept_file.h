// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "os/file_system.h"

namespace stoker {

/// A file that is read now and then for as long as the object exists. It stays open while few of
/// them do, process-wide; the others are opened for each read, so that the number of descriptors is
/// bounded whatever the number of files. No locks: works from many threads and after a fork.
class KeptFile {
 public:
  /// Opens the file; throws what FileSystem::open() throws.
  explicit KeptFile(std::string path);
  ~KeptFile();
  KeptFile(const KeptFile&) = delete;
  KeptFile& operator=(const KeptFile&) = delete;

  const std::string& path() const { return path_; }
  /// As it was when it was opened first.
  const FileInfo& info() const { return info_; }
  /// As ReadableFile::read_at(). Where the file had to be opened again, that may throw too: it can
  /// be gone, or be another one, whose contents the caller must be able to tell.
  size_t read_at(uint64_t offset, MutableBytes into) const;
  /// Reads are over for now: closes the file unless it is one of the few that stay open.
  void settle();

 private:
  std::string path_;
  std::unique_ptr<ReadableFile> file_;
  FileInfo info_;
  bool counted_ = false;
};

}  // namespace stoker
