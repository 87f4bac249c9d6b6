// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "measure/spikes.h"

namespace stoker {

/// From which step on a run is steady, if ever.
struct SteadyState {
  enum class Kind {
    flat,       // steady from the first step on
    warm_up,    // steady once it has become faster
    slow_down,  // steady once it has become slower
    none,       // no part of it speaks for the whole: see cause
  };
  enum class Cause {
    settled,        // kind is not none
    too_short,      // for any statement, or for where it begins to be steady
    drift_slower,   // becomes slower all the way: a leak, a growing working set
    drift_faster,   // becomes faster all the way: a cache that still fills
    cyclic,         // long slow and fast phases that come again: a neighbour, a shuffle buffer
    late_slower,    // became slower shortly before the end: throttling, a neighbour
    late_faster,    // became faster shortly before the end: it has only now warmed up
    ends_unsteady,  // changed shortly before the end, after other changes
  };

  Kind kind = Kind::none;
  Cause cause = Cause::too_short;
  size_t from_step = 0;         // where the steady part begins; 0 where kind is none
  std::vector<size_t> changes;  // where phases of different speed begin, the first step left out
  double mean = 0;              // seconds per step of the steady part, else of all, less spikes
  double mean_all = 0;          // the same with all spikes and outliers
  std::vector<Periodic> periodic;
  std::vector<size_t> outliers;  // steps
  size_t dropped = 0;            // steps whose duration is negative or no number: the clock jumped
};

/// `seconds` are the durations of consecutive steps. `boundaries` are steps known to begin an
/// epoch; where they are much longer than others they are left out. Any input is allowed.
SteadyState steady_state(std::span<const double> seconds, std::span<const size_t> boundaries = {});

}  // namespace stoker
