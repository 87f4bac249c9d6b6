// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/hdf5_dataset.h"

namespace stoker {

struct Hdf5Named {
  std::string name;
  Hdf5Dataset dataset;
};

/// Datasets of one group that share the first dimension: one answer to what the samples are.
struct Hdf5Choice {
  std::string group;  // its path; "" is the root
  uint64_t rows = 0;
  std::vector<Hdf5Named> datasets;
};

/// Adds what the datasets of a group with so many rows are: the fields of one choice, or those of
/// several where names say that they are splits of the same length.
void add_hdf5_choices(const std::string& group, uint64_t rows, std::vector<Hdf5Named> datasets,
                      std::vector<Hdf5Choice>& choices);

/// Path of a member of a group.
std::string join_hdf5_path(const std::string& group, const std::string& name);

/// Returns the number of the choice that has the samples: the one with most bytes. The names in
/// `fields`, which another shard of the dataset has as fields, decide where they can. Throws
/// Error(usage) that lists the choices where none has clearly more than the others, where another
/// looks like a further split of the same data, or where other groups have as many rows and the
/// user asked for neither, `asked` being the group that was; `name` is what it calls the file.
/// REQUIRES at least one choice.
size_t choose_hdf5(Hdf5File& file, std::span<const Hdf5Choice> choices, const std::string& asked,
                   std::span<const std::string> fields, const std::string& name);

/// The datasets of a choice for messages, "images,labels,…".
std::string hdf5_names(std::span<const Hdf5Named> datasets);

}  // namespace stoker
