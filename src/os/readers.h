// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "os/file_system.h"
#include "os/output_file.h"

namespace stoker {

/// Who may read all of some files, as their modes have it: what describes them is for nobody else.
class Readers {
 public:
  void add(const FileInfo& file);
  /// The same for a file of which only the path is known; nothing changes where it is gone.
  void add(const std::string& path);

  /// For a new file: as the umask gives it, but for nobody who may not read all of the files.
  Access at_most() const;
  /// The same, whatever the umask says, for those of them whom `mode`, a directory's, lets in.
  Access like(uint32_t mode) const;

 private:
  uint32_t bits_ = 0044;
  std::optional<uint32_t> group_;
  bool several_groups_ = false;
};

}  // namespace stoker
