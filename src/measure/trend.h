// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "measure/change_points.h"

namespace stoker {

/// A smooth curve through values: along a line that ends in a level, along an exponential towards a
/// level, or away from one.
struct Trend {
  double squares = 0;    // of the residuals, summed
  size_t levels_at = 0;  // from here on it differs from the level by less than `unseen`
  size_t ends_at = 0;    // the same with `tolerance`
  bool rises = false;
};

/// The curve that fits best. Where the end still creeps, ends_at is the size.
Trend fit_trend(std::span<const double> values, double unseen, double tolerance);

/// Whether a straight line through `values` rises or falls by more than `least` of their mean, and
/// by more than `sigmas` standard errors. 1, -1, or 0 for neither.
int creeps(std::span<const double> values, const Noise& noise, double least, double sigmas);

/// Whether one sine with 2 to 8 periods in the series is stronger than noise would make it, and
/// varies by more than `least` of the mean.
bool has_slow_cycle(std::span<const double> values, const Noise& noise, double least);

}  // namespace stoker
