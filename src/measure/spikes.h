// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace stoker {

/// Steps at a regular distance that take much longer: checkpoints, epoch ends, evaluations.
struct Periodic {
  size_t period = 0;   // steps
  size_t first = 0;    // step
  size_t count = 0;    // found; one or two of them may hide in the noise
  double seconds = 0;  // median length of such a step
};

struct Spikes {
  size_t leading = 0;               // much longer steps that the series begins with
  std::vector<Periodic> periodic;   // the most regular first
  std::vector<size_t> outliers;     // other steps far away from their neighbours
  std::vector<unsigned char> kept;  // for each step: 1 unless it is one of the above
};

/// Finds what hides the level of a series. `boundaries` are steps known to begin an epoch: where
/// they are long, they are taken out also when they are not regular.
Spikes find_spikes(std::span<const double> steps, std::span<const size_t> boundaries);

}  // namespace stoker
