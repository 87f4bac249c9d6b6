// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "format/format.h"

namespace stoker {

/// A directory of loose files, whatever they are, is a folder. Throws Error(usage) where it only
/// holds other datasets.
std::optional<Layout> detect_folder(const Source& source);

/// Looks at the size and time of every file of the part; opens none.
void scan_folder(const Source& source, const Layout& layout, const Part& part, ScanSink& sink);

}  // namespace stoker
