// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace stoker {

/// A new directory among the temporary files that is gone when the object is.
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

}  // namespace stoker
