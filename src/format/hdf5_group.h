// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/hdf5_file.h"

namespace stoker {

/// A name in a group, and what it leads to.
struct Hdf5Link {
  std::string name;
  uint64_t address = kNowhere;  // of the object's header; kNowhere for other kinds of links
  std::string target;           // of a soft link: a path
  bool external = false;        // leads to another file
};

/// The links of a group, sorted by name; nothing where the object is none.
std::optional<std::vector<Hdf5Link>> read_hdf5_links(Hdf5File& file, const Hdf5Messages& messages);

/// The object at a path such as "train/images", soft links followed; nothing where there is none.
std::optional<uint64_t> find_hdf5_object(Hdf5File& file, std::string_view path);

}  // namespace stoker
