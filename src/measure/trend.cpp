// SPDX-License-Identifier: Apache-2.0
#include "measure/trend.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

namespace stoker {
namespace {

constexpr int kShapes = 60;          // tried for each kind of curve
constexpr double kCyclePower = 12;   // noise exceeds it once in e^12 = 160,000 sines
constexpr double kCycleStep = 0.25;  // periods between one sine tried and the next

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Least squares of values = level + slope * basis.
struct Fit {
  double level = 0, slope = 0, squares = 0;
};

Fit fit(std::span<const double> values, const std::vector<double>& basis) {
  const double mean = mean_of(values), middle = mean_of(basis);
  double across = 0, spread = 0, squares = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    across += (basis[i] - middle) * (values[i] - mean);
    spread += (basis[i] - middle) * (basis[i] - middle);
    squares += (values[i] - mean) * (values[i] - mean);
  }
  if (spread <= 0) return {mean, 0, squares};
  const double slope = across / spread;
  return {mean - slope * middle, slope, std::max(0.0, squares - slope * across)};
}

/// What of the curve is left at each value: 0 where it has levelled out.
template <typename Curve>
void try_curve(std::span<const double> values, double unseen, double tolerance, Curve&& curve,
               Trend& best) {
  std::vector<double> basis(values.size());
  for (size_t i = 0; i < basis.size(); ++i) basis[i] = curve(static_cast<double>(i));
  const Fit found = fit(values, basis);
  if (found.squares >= best.squares) return;
  best = {found.squares, 0, 0, found.slope * (basis.back() - basis.front()) > 0};
  for (size_t i = 0; i < basis.size(); ++i) {
    const double left = std::abs(found.slope * basis[i]);
    if (left > unseen) best.levels_at = i + 1;
    if (left > tolerance) best.ends_at = i + 1;
  }
}

}  // namespace

Trend fit_trend(std::span<const double> values, double unseen, double tolerance) {
  Trend best;
  best.squares = std::numeric_limits<double>::infinity();
  const auto n = static_cast<double>(values.size());
  for (int k = 1; k <= kShapes; ++k) {
    const double share = static_cast<double>(k) / kShapes;
    const double end = n * share * share;  // closer together where the series begins
    const double decay = end / 2;
    const auto line = [&](double i) { return std::max(0.0, 1 - i / end); };
    const auto towards = [&](double i) { return std::exp(-i / decay); };
    const auto away = [&](double i) { return std::exp((i + 1 - n) / decay); };
    try_curve(values, unseen, tolerance, line, best);
    try_curve(values, unseen, tolerance, towards, best);
    try_curve(values, unseen, tolerance, away, best);
  }
  return best;
}

int creeps(std::span<const double> values, const Noise& noise, double least, double sigmas) {
  if (values.size() < 3) return 0;
  std::vector<double> places(values.size());
  std::iota(places.begin(), places.end(), 0.0);
  const Fit line = fit(values, places);
  const auto n = static_cast<double>(values.size());
  const double spread = n * (n * n - 1) / 12;
  const double error = std::sqrt(line.squares / (n - 2) / spread * noise.inflation());
  if (std::abs(line.slope) * n <= least * mean_of(values)) return 0;
  if (std::abs(line.slope) <= sigmas * error) return 0;
  return line.slope > 0 ? 1 : -1;
}

bool has_slow_cycle(std::span<const double> values, const Noise& noise, double least) {
  const auto n = static_cast<double>(values.size());
  const double mean = mean_of(values);
  for (double periods = 2; periods <= 8; periods += kCycleStep) {
    const double turn = 2 * std::numbers::pi * periods / n;
    double along = 0, across = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      along += (values[i] - mean) * std::cos(turn * static_cast<double>(i));
      across += (values[i] - mean) * std::sin(turn * static_cast<double>(i));
    }
    const double amplitude = 2 / n * std::hypot(along, across);
    // AR(1) noise has the variance sigma^2 inflation 2 / n in each of the two.
    const double power = n * amplitude * amplitude / 4;
    if (2 * amplitude > least * mean &&
        power > kCyclePower * noise.sigma * noise.sigma * noise.inflation()) {
      return true;
    }
  }
  return false;
}

}  // namespace stoker
