// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>

#include "os/file_system.h"

namespace stoker {

/// The directory, with a '/' at its end, that the links in a snapshot of a Hugging Face cache lead
/// to: REPO/snapshots/REVISION/FILE is a link to REPO/blobs/HASH. Empty where a directory's real
/// path is not that of a snapshot, or of something in one.
std::string blobs_of_snapshot(const std::string& real_directory);

/// Opens files below a directory that is held open, with openat2() where the kernel has it: one
/// call for a file that no link leads out to. Safe from many threads, also after a fork.
class OpenBeneath {
 public:
  explicit OpenBeneath(std::string directory) : directory_(std::move(directory)) {}
  ~OpenBeneath();
  OpenBeneath(const OpenBeneath&) = delete;
  OpenBeneath& operator=(const OpenBeneath&) = delete;

  std::string path_of(const std::string& name) const { return directory_ + "/" + name; }
  /// A descriptor. `name` is one that unsafe_path() accepts; others are Error(corrupt).
  int open(const std::string& name, int flags, Links links);

  /// Tests take the way of kernels that lack openat2().
  static void without_openat2(bool lacking);

 private:
  int root();
  bool root_was_replaced(int root) const;
  int try_open(int root, const std::string& name, int flags, Links links) const;
  int open_plainly(int root, const std::string& name, int flags, Links links) const;
  void check_links(int root, const std::string& name, int file, Links links,
                   const std::string& whole) const;

  std::string directory_;
  std::atomic<int> root_{-1};
};

}  // namespace stoker
