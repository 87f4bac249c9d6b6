// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataset/index.h"
#include "dataset/tiled_file.h"
#include "format/format.h"
#include "pack/pack.h"

namespace stoker {

/// How a source is read that has arrays in chunks which cut through its samples (tiled_view.h):
/// memory is bounded for all threads together, however many there are.
struct ViewReading {
  bool in_order = false;  // there are some that are too large to be kept: only front to back
  unsigned writers = 0;   // how many shards may be written at a time
  ViewLimits limits;      // of each of them
};
ViewReading plan_views(const Index& source, const PackOptions& options);

/// Throws Error(usage) where the samples would be read in another order than they can be.
void refuse_other_orders(const Index& source, const std::string& path, const WriteFormat& write,
                         const PackOptions& options);

}  // namespace stoker
