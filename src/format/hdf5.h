// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "format/format.h"

namespace stoker {

// HDF5: groups of arrays in one file. The datasets of one group that share the first dimension are
// the fields, the rows of them the samples. docs/formats/hdf5.md says which part of the format is
// read; it is read by own code, and no library of it is linked.

/// A file is one by its signature, which may lie behind a user block. A directory is one where such
/// files lie at its top, unless a sub-directory has something visible in it or images outnumber
/// them. Throws Error(usage) where it is not clear which group is meant.
std::optional<Layout> detect_hdf5(const Source& source);

void scan_hdf5(const Source& source, const Layout& layout, const Part& part, ScanSink& sink);

extern const WriteFormat kHdf5Write;

}  // namespace stoker
