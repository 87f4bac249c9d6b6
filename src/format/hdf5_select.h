// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/hdf5_choice.h"

namespace stoker {

/// The dataset in which pack stores the names of classes that the type of `label` has no room for.
inline constexpr std::string_view kHdf5Classes = "__classes__";

/// A dataset that should be a field and cannot be read.
struct Hdf5Problem {
  std::string name;
  uint64_t offset = 0;
  std::string cause;
  bool damaged = false;  // else stored in a way that is not read
};

/// The datasets that are the fields of the samples: those of one group that share the first
/// dimension.
struct Hdf5Selection {
  uint64_t rows = 0;
  std::vector<Hdf5Named> datasets;
  std::vector<Hdf5Problem> problems;
  std::optional<Hdf5Dataset> classes = {};  // kHdf5Classes
  std::string group = {};                   // path of the group they are in
  /// What is not read, because it is of another length or in another group: "mean (3)", "meta/names
  /// (10)".
  std::vector<std::string> unused = {};
};

/// `inner` names a group ("train"), or datasets with commas between them ("x_train,y_train"). Where
/// it is empty, or names a group, the datasets in it and below it are taken whose common first
/// dimension has most of the bytes; `fields` as for choose_hdf5(). Throws Error(usage) with the
/// choices where several could be meant, Error(not_found) where there is nothing, Hdf5Error where
/// the file is damaged; `name` is what they call the file.
Hdf5Selection select_hdf5(Hdf5File& file, std::string_view inner,
                          std::span<const std::string> fields, const std::string& name);

}  // namespace stoker
