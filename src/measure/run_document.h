// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "base/json_fwd.h"
#include "measure/run_summary.h"

namespace stoker {

/// A run as `stoker time --json` and Meter.summary() give it; docs/commands/time.md describes it.
Json run_document(const Run& run, const RunSummary& summary);
/// Several runs of the same command, the last in full, as `stoker time --json` prints it.
Json time_document(const std::vector<Run>& runs, const std::vector<RunSummary>& summaries);
/// Run B beside A.
Json comparison_document(const Run& a, const Run& b);
/// Nothing for less than two runs that have a rate.
std::optional<Interval> rate_over_runs(const std::vector<RunSummary>& summaries);
/// {"value", "low", "high"}, or null.
Json interval_json(const std::optional<Interval>& interval);

}  // namespace stoker
