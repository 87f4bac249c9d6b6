// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "format/format.h"

namespace stoker {

// Arrow's IPC files and streams, Feather 2 (which is the former), and what Hugging Face's
// `datasets` saves: a folder of streams. A row is a sample, a column a field; see arrow_ipc.h for
// the framing, arrow_plan.h for what becomes of columns.

/// A file is Arrow by its first bytes, or by its name (.arrow, .feather, .ipc, .arrows). A directory is
/// one where such files lie at its top, unless a sub-directory has something visible in it; with a
/// state.json, its shards are those listed there.
std::optional<Layout> detect_arrow(const Source& source);

void scan_arrow(const Source& source, const Layout& layout, const Part& part, ScanSink& sink);

/// The JSON that dataset_info.json holds, as far as it is there.
std::string read_dataset_info(const Source& source);

}  // namespace stoker
