// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/format.h"

namespace stoker {

std::optional<Layout> detect_lmdb(const Source& source);
void scan_lmdb(const Source& source, const Layout& layout, const Part& part, ScanSink& sink);

extern const WriteFormat kLmdbWrite;

}  // namespace stoker
