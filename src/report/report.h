// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "measure/run_summary.h"
#include "measure/scaling.h"

namespace stoker {

struct ReportOptions {
  std::vector<std::string> runs;  // directories
  std::string unit;           // what the runs differ in: "core"; empty: ranks, where they differ
  std::vector<double> units;  // how many each run had; empty: as many as it had ranks
};

struct ReportedRun {
  std::string name;    // the directory, as it was given
  std::string letter;  // what charts and tables call it: "A"
  Run run;
  RunSummary summary;
};

/// Runs for a person, beside each other; the first is what others are compared with.
struct Report {
  std::vector<ReportedRun> runs;
  std::string unit;
  std::vector<ScalingPoint> scaling;  // empty where the runs do not differ in units
};

/// Reads the runs. Throws Error(not_found) where one is none, Error(usage) where units are no
/// match.
Report make_report(const ReportOptions& options);

/// All there is; docs/commands/report.md describes it.
Json report_document(const Report& report);
/// One page that needs nothing else. Whatever text the runs bring is shown and never run.
std::string report_html(const Report& report);
std::string report_markdown(const Report& report);
/// The figures, one per line.
std::string report_csv(const Report& report);
/// Every step, one per line.
std::string report_steps(const Report& report);

/// Writes an event file for each run into a directory of its own below `directory`. Writing the
/// same runs again replaces them. Returns the bytes written.
uint64_t write_tensorboard(const Report& report, const std::string& directory);

}  // namespace stoker
