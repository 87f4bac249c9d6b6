// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "os/safe_directory.h"

namespace stoker {

/// A new directory, for this user alone, that is gone with the object. It is held open: what others
/// put in its place where they may rename is not removed.
class TemporaryDirectory {
 public:
  /// `path` ends in "XXXXXX", which becomes something that was free.
  explicit TemporaryDirectory(std::string path);
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::optional<SafeDirectory> held_;
};

/// A new directory among the temporary files that is gone when the object is. Its name says which
/// process has made it: what a killed one left, the next one of the same user removes.
class ScratchDirectory {
 public:
  ScratchDirectory();

  const std::string& path() const { return directory_.path(); }

 private:
  TemporaryDirectory directory_;
};

/// Removes scratch directories of this user whose makers are no more, unless others may rename
/// there: they could give such a name to anything. What cannot be removed stays.
void remove_abandoned_scratch();

}  // namespace stoker
