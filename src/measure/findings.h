// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "measure/run_summary.h"

namespace stoker {

/// What was asked for against what was used: cores, threads, memory, GPUs, and waiting for data.
std::vector<Finding> find_what_to_change(const Run& run, const RunSummary& summary);

/// Where no steps were seen because the command keeps Python from what watches it: "python -I".
std::optional<Finding> hook_was_ignored(const Run& run, const RunSummary& summary);

}  // namespace stoker
