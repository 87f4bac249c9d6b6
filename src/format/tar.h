// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "format/format.h"

namespace stoker {

// WebDataset's shards: a tar whose consecutive members with one key (member_name.h) are a sample.
// Read: v7, ustar, pax and GNU archives. Written: ustar, with pax headers only where it must.

/// A file is a tar by its content, or by its name where that says so (.tar, .tgz, .tar.gz,
/// .tar.zst). A directory is one where such names lie at its top, unless a sub-directory has
/// something visible in it, or images outnumber them: that is a folder with tars beside its
/// samples. Other files beside the shards (read-me, statistics, indexes) are left alone. A number
/// that is missing in the names of the shards is a fault of the layout.
std::optional<Layout> detect_tar(const Source& source);

/// A sample of which any member is damaged, truncated or no plain file is left out as a whole.
void scan_tar(const Source& source, const Layout& layout, const Part& part, ScanSink& sink);

extern const WriteFormat kTarWrite;

}  // namespace stoker
