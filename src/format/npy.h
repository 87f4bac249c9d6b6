// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "format/format.h"

namespace stoker {

// Arrays whose first dimension counts samples; docs/formats/npy.md says which files and how they
// are put together.

std::optional<Layout> detect_npy(const Source& source);
void scan_npy(const Source& source, const Layout& layout, const Part& part, ScanSink& sink);
extern const WriteFormat kNpyWrite;

}  // namespace stoker
