// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "format/format.h"

namespace stoker {

// Arrow's IPC files and streams, Feather 2 (which is the former), and what Hugging Face's
// `datasets` saves: a folder of streams. A row is a sample, a column a field; see arrow_ipc.h for
// the framing, arrow_plan.h for what becomes of columns.

/// A file is Arrow by its first bytes, or by its name (.arrow, .ipc, .arrows). A directory is one
/// where such files lie at its top, unless a sub-directory has something visible in it; with a
/// state.json, its shards are those listed there.
std::optional<Layout> detect_arrow(const Source& source);
/// The same for the name .feather, which nothing but an IPC file has: it has a name of its own
/// because it is written in another way.
std::optional<Layout> detect_feather(const Source& source);

void scan_arrow(const Source& source, const Layout& layout, const Part& part, ScanSink& sink);

/// A folder as `datasets.save_to_disk` writes it: streams, state.json, dataset_info.json.
extern const WriteFormat kArrowWrite;
/// IPC files.
extern const WriteFormat kFeatherWrite;

/// The JSON that dataset_info.json holds, as far as it is there.
std::string read_dataset_info(const Source& source);

}  // namespace stoker
