// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/json_fwd.h"
#include "measure/run_summary.h"

namespace stoker {

/// A run as `stoker time --json` and Meter.summary() give it; docs/commands/time.md describes it.
Json run_document(const Run& run, const RunSummary& summary);
/// {"value", "low", "high"}, or null.
Json interval_json(const std::optional<Interval>& interval);

}  // namespace stoker
