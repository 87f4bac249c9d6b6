// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/format.h"

namespace stoker {

/// What lies below a folder.
struct FolderTree {
  struct Top {
    std::string name;
    bool indexed = false;  // holds an index: is a dataset by itself
  };

  /// In the order of samples: by first directory, then by directory, then by name; all bytewise,
  /// as torchvision's ImageFolder has it. Files of one sample lie side by side.
  FileNames files;
  std::vector<Top> tops;      // directories right below the root, sorted
  std::vector<Fault> faults;  // sorted by path
  uint64_t hidden = 0;        // names that begin with a dot: neither counted twice nor entered
};

/// Lists `source.root` and all directories below it, many at a time. Follows links that stay
/// inside; what can be no sample, or cannot be looked into, is a fault.
/// Throws only where the root itself cannot be listed.
FolderTree walk_folder(const Source& source);

/// Whether `a` comes before `b` in one directory: bytewise, but a name without a dot compares as
/// if it ended in one, so that nothing comes between the files "x", "x.cls" and "x.jpg".
bool name_before(std::string_view a, std::string_view b);

/// The key's part of a base name: all before its first dot.
inline std::string_view stem_of(std::string_view name) { return name.substr(0, name.find('.')); }

/// The first of `files` (in the order of a FolderTree) in `directory` that does not come before
/// `name`; nothing where the directory holds no files.
std::optional<size_t> find_place(const FileNames& files, std::string_view directory,
                                 std::string_view name);

/// "directory/name", or the name alone in the root.
std::string join_path(std::string_view directory, std::string_view name);

}  // namespace stoker
