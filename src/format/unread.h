// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "format/format.h"

namespace stoker {

// What others store data in and is not read here, so that a message can name it.

/// Of a file by its name and first bytes: "is a zip archive, which is not read: unpack it …".
/// Nothing where it is not known.
std::optional<std::string> describe_unread_file(std::string_view name, std::string_view begin);

/// Throws Error(unsupported) where a directory is a dataset of another kind, by files of exact
/// names and contents: a Zarr store, LevelDB, MDS …
void refuse_unread_directory(const Source& source);

/// The same for what the folder format would take for samples: files that are archives or tables.
void refuse_unread_files(const Source& source, const Layout& layout);

}  // namespace stoker
