// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "measure/run_summary.h"

namespace stoker {

/// What `stoker time` says at its end: of one run, or of several of the same command.
std::string time_text(const std::vector<Run>& runs, const std::vector<RunSummary>& summaries,
                      const Style& style);

/// Run B beside A.
std::string comparison_text(const Run& a, const Run& b);

}  // namespace stoker
