// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "dataset/tiled_view.h"
#include "os/file_system.h"

namespace stoker {

/// What bringing rows together may cost.
struct ViewLimits {
  uint64_t memory = 256 << 20;  // of rows that are kept; a single one may take more
  unsigned threads = 1;
};

/// The rows that `view` describes, one after the other in C order. Chunks are decoded for many rows
/// at a time: reading forward costs each chunk once where the rows of a row of chunks fit into the
/// memory, reading here and there far more. Where a chunk is damaged, reading the rows that it cuts
/// through throws Error(corrupt) with the cause alone.
std::unique_ptr<ReadableFile> as_rows(std::unique_ptr<ReadableFile> file, TiledView view,
                                      const ViewLimits& limits);

}  // namespace stoker
