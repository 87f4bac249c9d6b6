// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "base/progress.h"
#include "dataset/scan.h"
#include "dataset/segment_writer.h"
#include "format/format.h"

namespace stoker {

/// Takes a segment from structure to full depth: reads every byte that it describes, and adds the
/// checksum of each field and shard, numbers, and the shapes of arrays. What the file states about
/// itself is compared; where it does not hold, the fault is named and the fields concerned get a
/// checksum that no bytes have, so that nobody reads them for good.
void complete_segment(SegmentWriter& segment, const Source& source,
                      std::span<const StatedChecksum> stated, unsigned threads, Progress* progress);

}  // namespace stoker
