// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "load/loader_stats.h"

namespace stoker {

/// How much of what the Loader uses.
struct Tuning {
  unsigned fetch = 1;   // threads
  unsigned decode = 0;  // threads; 0: there is nothing to decode
  unsigned ahead = 3;   // batches

  bool operator==(const Tuning&) const = default;
};

struct TuningLimits {
  unsigned most_fetch = 1, most_decode = 0;  // threads
  unsigned least_ahead = 1, most_ahead = 1;
  unsigned cores = 1;
};

/// What to use from now on, by what the queues showed in the last `seconds`: `fetch` and `decode`
/// are what the stages did in them, `waited` how long the training step waited for batches.
Tuning tuned(Tuning now, const StageTime& fetch, const StageTime& decode, double waited,
             double seconds, const TuningLimits& limits);

}  // namespace stoker
