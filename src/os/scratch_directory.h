// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace stoker {

/// A new directory among the temporary files that is gone when the object is. Its name says which
/// process has made it: what a killed one left, the next one of the same user removes.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Removes scratch directories of this user whose makers are no more. What cannot be removed stays:
/// it is in nobody's way.
void remove_abandoned_scratch();

}  // namespace stoker
