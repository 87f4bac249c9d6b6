// SPDX-License-Identifier: Apache-2.0
#include "check/split_sizes.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "base/parallel.h"
#include "format/folder_walk.h"

namespace stoker {
namespace {

// Asking for a size waits for the file system, not for a core.
constexpr unsigned kLeastThreads = 8;

FileNames files_of(const Split& split, const std::string& root) {
  if (split.files.empty()) {
    try {
      return walk_folder({join_path(root, split.directory), "", "", &real_file_system()}).files;
    } catch (const Error&) {
      return {};  // is told by the check of this split
    }
  }
  FileNames names;
  names.directories = {""};
  for (const std::string& name : split.files) {
    names.files.push_back({0, static_cast<uint32_t>(name.size()), names.names.size()});
    names.names += name;
  }
  return names;
}

}  // namespace

std::vector<SplitSize> sizes_of_splits(const std::string& path, const SeveralSplits& found,
                                       unsigned jobs) {
  std::vector<SplitSize> sizes;
  for (const Split& split : found.splits()) {
    const std::string root = join_path(found.root(), split.directory);
    const FileNames names = files_of(split, found.root());
    std::atomic<uint64_t> bytes{0};
    parallel_for(names.files.size(), std::max(jobs, kLeastThreads), [&](size_t i) {
      const std::string& directory = names.directories[names.files[i].directory];
      try {
        const auto info =
            real_file_system().info(join_path(root, join_path(directory, names.name(i))), true);
        if (info) bytes += info->size;
      } catch (const Error&) {  // cannot be looked at: as above
      }
    });
    sizes.push_back({split.name, path + "::" + split.name, names.files.size(), bytes});
  }
  return sizes;
}

}  // namespace stoker
