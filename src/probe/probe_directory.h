// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "os/directory_lock.h"
#include "os/scratch_directory.h"

namespace stoker {

/// A hidden directory in a place, for what measuring writes there. Gone when the object is; what a
/// killed process left is removed by the next one that measures the same place.
class ProbeDirectory {
 public:
  /// Throws Error(permission) or Error(io) where nothing can be written.
  explicit ProbeDirectory(const std::string& place);

  const std::string& path() const { return directory_.path(); }

  /// Directories of processes that are no more: of this host where nobody holds their lock, of
  /// others where nothing has changed for a day. None where others may rename what is in the place:
  /// they could give such a name to anything.
  static void remove_leftovers(const std::string& place);

 private:
  TemporaryDirectory directory_;
  DirectoryLock lock_;
};

/// A large file that is written and read, open twice: through the page cache and, where the file
/// system takes O_DIRECT, past it.
class ProbeFile {
 public:
  /// A new one, that has lost its name already: it goes with the process.
  static ProbeFile create(const std::string& directory);
  /// One that is there, to be read only.
  static ProbeFile open(const std::string& path);
  ~ProbeFile();
  ProbeFile(ProbeFile&& other) noexcept;
  ProbeFile& operator=(ProbeFile&& other) noexcept;

  int buffered() const { return buffered_; }
  /// -1 where there is no O_DIRECT.
  int direct() const { return direct_; }
  /// From the system, at this moment.
  uint64_t size() const;

 private:
  ProbeFile(const std::string& path, bool write);

  int buffered_ = -1, direct_ = -1;
};

}  // namespace stoker
