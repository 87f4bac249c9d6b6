// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "measure/interval.h"
#include "results/run.h"

namespace stoker {

struct HourPrices {
  double core = 0, gpu = 0;
};

/// A run on GPUs beside one on cores.
struct GpuWorth {
  double cores = 1, gpus = 1;
  bool by_time = false;               // no rates: both are taken to have done the same work
  double cpu_rate = 0, gpu_rate = 0;  // samples a second; runs where by_time
  Interval speedup;                   // of the GPU run
  /// A GPU-hour does as much as so many core-hours: the highest price ratio at which it pays.
  Interval core_hours_per_gpu_hour;
  std::optional<Interval> cost_ratio;  // of the GPU run to the other, for the same work
};

/// Counts the cores and GPUs that the runs were allowed; one GPU where that is not known. Throws
/// Error(usage) for a run that failed.
GpuWorth gpu_worth(const Run& cpu, const Run& gpu, const std::optional<HourPrices>& prices);

/// The answer to "is the GPU worth it", in sentences.
std::string gpu_worth_text(const GpuWorth& worth, const std::optional<HourPrices>& prices);

}  // namespace stoker
