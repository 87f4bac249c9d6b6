// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace stoker {

/// Keeps other processes that ask for the same lock out of a directory. Leaves no file behind, and
/// ends with the process that holds it, however that ends.
class DirectoryLock {
 public:
  enum class Wait { no, yes };

  /// Where another process holds it: waits, or throws Error(io) at once. File systems without
  /// locks let everybody in.
  explicit DirectoryLock(const std::string& directory, Wait wait = Wait::no);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace stoker
