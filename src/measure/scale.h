// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "measure/interval.h"
#include "measure/run_summary.h"
#include "measure/scale_launch.h"
#include "measure/scaling.h"

namespace stoker {

// A sweep is a directory; whoever runs the same command with it again goes on with what is missing:
//
//   plan.json    what is run, at which widths, how often, in which order
//   n4-r2        the run directory of the second run at width 4
//   n4-r2.log    what that run wrote

/// One run of the command at one width.
struct ScaleRun {
  uint64_t n = 1;
  uint64_t repeat = 1;
  std::string directory;  // of the run
  bool done = false;      // ended well
  bool found = false;     // by an earlier sweep
  int exit_status = 0;
  double seconds = 0;
  std::string host;
  std::optional<Interval> rate;  // told_rate()
  bool counts_samples = false;   // otherwise that is steps a second
};

struct ScaleOptions {
  ScaleAxis axis = ScaleAxis::threads;
  std::vector<uint64_t> widths;
  std::vector<std::string> command;
  std::string directory;  // empty: a new one in stoker-scale/
  uint64_t repeats = 3;
  bool weak = false;  // the command does n times the work at width n
  bool pin = true;
  bool hook = true;
  std::string pattern;           // as TimeOptions has it
  std::optional<uint64_t> seed;  // of the order; nothing: any
  /// Runs this width alone, beside others who run theirs; 0: none, only what is there is told.
  std::optional<uint64_t> only;
  std::function<void(const ScaleRun&run, size_t number, size_t all)> each_begin, each_end;
  std::function<void(const std::string& note)> each_note;  // as TimeOptions has it
};

/// What was settled before the first run.
struct ScalePlan {
  ScaleOptions options;  // widths and repeats with those of earlier sweeps in the same directory
  uint64_t seed = 0;
  std::vector<ScaleRun> runs;        // in the order in which they are run
  std::vector<std::string> gpus;     // that may be used; none where they are not known
  std::vector<std::string> remarks;  // what whoever reads the result should know
};

enum class ScaleMeasure { samples_per_s, steps_per_s, seconds };

/// All runs at one width.
struct ScaleWidth {
  uint64_t n = 1;
  size_t runs = 0;
  double rate = 0;                   // mean; one divided by seconds where these were measured
  std::optional<Interval> interval;  // of the rate
  double seconds = 0;                // at that rate, where these were measured
  double speedup = 0, percent_of_ideal = 0;
};

struct ScaleResult {
  std::string directory;
  ScaleMeasure measure = ScaleMeasure::seconds;
  std::vector<ScaleRun> runs;        // that ended, in their order
  std::optional<ScaleRun> failed;    // ended the sweep
  std::vector<ScalingPoint> points;  // one for each run that ended well
  std::vector<ScaleWidth> widths;
  std::vector<std::string> remarks;
};

/// Makes the directory, or looks at what is in it. Throws Error(usage) where it belongs to another
/// command or more GPUs are wanted than there are.
ScalePlan plan_scale(const ScaleOptions& options);

/// Runs what is missing, up to the first run that fails. Throws as time_command() does, and
/// Error(interrupted), then without the run that was under way.
ScaleResult run_scale(ScalePlan plan, const Progress& progress);

/// Samples or steps a second of a run, also where its output says it only once: low and high are
/// then the value. Nothing where neither was seen.
std::optional<Interval> told_rate(const Run& run, const RunSummary& summary);

/// What the runs of a plan that are done say.
ScaleResult scale_result(const ScalePlan& plan);

}  // namespace stoker
