// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/interval.h"

namespace stoker {

/// One measurement: so many threads, GPUs or nodes gave so many samples per second.
struct ScalingPoint {
  double units = 1;
  double rate = 0;
};

/// What all repeats with the same number of units gave.
struct Speedup {
  double units = 1;
  double rate = 0;     // mean of the repeats
  double speedup = 0;  // beside one unit
  double ideal = 0;    // speedup / units, 1 is ideal
};

enum class ScalingModel {
  amdahl,     // gamma N / (1 + alpha (N - 1)): a part that only one does
  gustafson,  // gamma (N - alpha (N - 1)): that part does not grow with the work
  usl,        // gamma N / (1 + alpha (N - 1) + beta N (N - 1)): all wait for all, too
};

struct ScalingFit {
  ScalingModel model = ScalingModel::amdahl;
  double gamma = 0;       // rate of one unit
  double alpha = 0;       // 0 to 1 but for usl, which has no upper end
  double beta = 0;        // 0 but for usl
  double error = 0;       // root mean square of the relative residuals
  double most_units = 0;  // measured
};

/// Beyond this many times the most units measured nothing is predicted.
inline constexpr double kMostExtrapolation = 4;

/// One row per number of units, in their order. One unit's rate is measured, or where it is not,
/// that of the fewest units divided by them. Points that are not above zero are left out
/// everywhere.
std::vector<Speedup> speedups(std::span<const ScalingPoint> points);

/// Least squares of relative errors. Nothing where fewer numbers of units than parameters were
/// measured: two, for usl three.
std::optional<ScalingFit> fit_scaling(ScalingModel model, std::span<const ScalingPoint> points);

/// The model that predicts each number of units best from the others; of those that predict about
/// equally well, the simplest. Nothing for less than three numbers of units.
std::optional<ScalingFit> best_scaling(std::span<const ScalingPoint> points);

struct ScalingIntervals {
  Interval gamma, alpha, beta;
};

/// By resampling the residuals; the same points give the same intervals. REQUIRES: `fit` is of
/// `points`.
ScalingIntervals scaling_intervals(const ScalingFit& fit, std::span<const ScalingPoint> points);

/// The rate with so many units; nothing below one and beyond kMostExtrapolation.
std::optional<double> predicted_rate(const ScalingFit& fit, double units);

/// Where the rate is highest, also where that is far beyond what was measured; nothing where it
/// grows for ever.
std::optional<double> peak_units(const ScalingFit& fit);

/// The most units up to which each one adds at least `worth` of what the first one gives. Nothing
/// where that is beyond what may be predicted.
std::optional<size_t> worthwhile_units(const ScalingFit& fit, double worth = 0.5);

/// "8 cores: 5.9x (74 % of ideal). Beyond 6 each further core brings under 50 %. Ask for 6."
/// `unit` is the name of one. Says what is missing where that much cannot be said.
std::string scaling_advice(std::span<const ScalingPoint> points, std::string_view unit);

}  // namespace stoker
