// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace stoker {

struct Phase {
  size_t begin = 0, end = 0;  // half open
  double mean = 0, sigma = 0;
};

/// What varies from value to value, from the medians of the differences to the next value and to
/// the one behind it: level shifts, which are few, do not show in them.
struct Noise {
  double sigma = 0;
  double rho = 0;  // of an AR(1), 0 to 0.8

  /// How many values weigh as much as one independent one.
  double inflation() const { return (1 + rho) / (1 - rho); }
};

Noise noise_of(std::span<const double> values);

/// Cuts `values` where mean or variance change: PELT (Killick et al. 2012) with a normal cost.
/// Longer series are averaged to 600 values first and cut exactly afterwards.
std::vector<Phase> find_phases(std::span<const double> values, const Noise& noise);

/// Joins neighbours whose means differ by less than `tolerance` of the level, or by less than
/// `sigmas` standard errors.
std::vector<Phase> merge_equal(std::span<const double> values, std::vector<Phase> phases,
                               const Noise& noise, double tolerance, double sigmas);

}  // namespace stoker
