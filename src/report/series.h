// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "report/report.h"

namespace stoker {

/// Neighbouring values drawn together: their mean, and the extremes, so that no stall disappears.
struct SeriesPoint {
  double x = 0, low = 0, mean = 0, high = 0;
};

/// Something that changes during a run.
struct Series {
  std::string name;   // "throughput", "waiting", "cpu", "memory", "gpu"
  std::string title;  // for a person
  std::string unit;   // of the values
  std::string axis;   // "s" since the begin of the run, or "step"
  double limit = 0;   // what there was of it; 0: no limit, or not known
  double from = 0;    // where the steady part begins, on the axis; 0: at the begin, or nowhere
  double mean = 0;    // over all of the run
  std::vector<SeriesPoint> points = {};
};

/// A value, and how much of the mean it makes up.
struct Sampled {
  double x = 0, value = 0, weight = 1;
};

/// At most `most` points, each of equally many neighbours.
std::vector<SeriesPoint> thin(const std::vector<Sampled>& samples, size_t most);

/// What there is, in the order in which it is shown.
std::vector<Series> series_of(const ReportedRun& run);
Json series_json(const Series& series);

/// Each training step, over all ranks.
struct ReportedStep {
  double end_s = 0, seconds = 0, rate = 0;
  double wait_share = -1;  // cannot be told
};
std::vector<ReportedStep> steps_of(const ReportedRun& run);

/// Cores in use between two looks, and the second of them.
struct ReportedUse {
  double time_s = 0, cores = 0, seconds = 0;
  const ResourceSample* sample = nullptr;
};
std::vector<ReportedUse> uses_of(const Run& run);

}  // namespace stoker
