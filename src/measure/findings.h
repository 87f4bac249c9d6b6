// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "measure/run_summary.h"

namespace stoker {

/// What was asked for against what was used: cores, threads, memory, GPUs, and waiting for data.
std::vector<Finding> find_what_to_change(const Run& run, const RunSummary& summary);

}  // namespace stoker
