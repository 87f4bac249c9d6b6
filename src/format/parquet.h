// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "format/format.h"

namespace stoker {

// Parquet files, read only. A row is a sample, a column a field, named as in Arrow files. A file is
// "PAR1", pages, a footer (Thrift) that says where the columns of each row group lie, u32 length of
// the footer, "PAR1". Values are found by decoding the pages once: a page that is compressed
// becomes a block, values in others are plain ranges of the file.

/// A file is Parquet by its first and last bytes, or by its name (.parquet). A directory is one
/// where such files lie at its top, unless a sub-directory has something visible in it.
std::optional<Layout> detect_parquet(const Source& source);

void scan_parquet(const Source& source, const Layout& layout, const Part& part, ScanSink& sink);

}  // namespace stoker
