// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/folder_walk.h"

namespace stoker {

// Directories that a folder of samples would be the wrong reading of. DIRECTORY::all, and a list,
// say that it is the right one.

/// Throws Error where a directory holds datasets rather than samples: sub-directories of shards, as
/// `pack --split` and the Hugging Face hub have them, shards next to sub-directories,
/// sub-directories with splits of their own, or a single one of a kind that is not read. Where
/// there is nothing but shards, ::all is no reason to take them for samples.
void refuse_other_layouts(const Source& source, const FolderTree& tree);

/// Throws Error where sub-directories are parts of samples rather than classes, by their names:
/// images and annotations, as in PASCAL VOC.
void refuse_roles(const Source& source, const FolderTree& tree);

}  // namespace stoker
