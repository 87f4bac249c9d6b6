// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/format.h"

namespace stoker {

/// Lets `source.list` choose among the files of a folder: one sample per row, in the order of the
/// rows, with the columns as fields. A row may name any file of its sample, or its key. Rows that
/// name nothing become faults and leave no sample; what was wrong with files that no row names
/// does not matter any more.
/// REQUIRES: `layout` holds files and faults of a FolderTree.
void apply_list(const Source& source, Layout& layout);

}  // namespace stoker
