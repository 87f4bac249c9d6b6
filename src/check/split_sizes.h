// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataset/splits.h"

namespace stoker {

/// What of a directory is one dataset among several.
struct SplitSize {
  std::string name;
  std::string path;  // as commands take it: "D::train"
  uint64_t files = 0, bytes = 0;
};

/// Counts the files of each split of the directory that the user called `path`.
std::vector<SplitSize> sizes_of_splits(const std::string& path, const SeveralSplits& found,
                                       unsigned jobs);

}  // namespace stoker
