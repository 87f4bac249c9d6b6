// SPDX-License-Identifier: Apache-2.0
#include "measure/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "measure/random.h"

namespace stoker {
namespace {

constexpr int kReweightings = 100;  // each makes the weights those of the fit before
constexpr size_t kResamples = 1000;
constexpr size_t kMostUnits = 1'000'000;
constexpr uint64_t kSeed = 0x5CA1E;
constexpr double kClearlyBetter = 0.9;  // times the error of the simpler model

using Vector = std::array<double, 3>;

std::vector<ScalingPoint> usable(std::span<const ScalingPoint> points) {
  std::vector<ScalingPoint> good;
  for (const ScalingPoint& point : points) {
    if (point.units > 0 && point.rate > 0 && std::isfinite(point.units) &&
        std::isfinite(point.rate)) {
      good.push_back(point);
    }
  }
  return good;
}

std::vector<double> numbers_of_units(std::span<const ScalingPoint> points) {
  std::vector<double> units;
  for (const ScalingPoint& point : points) units.push_back(point.units);
  std::sort(units.begin(), units.end());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  return units;
}

size_t parameters_of(ScalingModel model) { return model == ScalingModel::usl ? 3 : 2; }

/// The models are sums of these with factors that are not below zero: the rate (gustafson: alpha
/// gamma + (1 - alpha) gamma N), or the time per unit of work, N / rate (amdahl: (1 - alpha) /
/// gamma
/// + alpha / gamma N). So alpha stays between 0 and 1.
Vector terms(ScalingModel model, double units) {
  if (model == ScalingModel::usl) return {1, units - 1, units * (units - 1)};
  return {1, units, 0};
}

double target(ScalingModel model, const ScalingPoint& point) {
  return model == ScalingModel::gustafson ? point.rate : point.units / point.rate;
}

double sum(const Vector& factors, const Vector& terms) {
  return factors[0] * terms[0] + factors[1] * terms[1] + factors[2] * terms[2];
}

/// Solves the normal equations for the factors in `used`; the others are 0. Nothing where they have
/// no single solution.
std::optional<Vector> solve(const std::array<Vector, 3>& matrix, const Vector& right,
                            const std::array<bool, 3>& used) {
  std::array<std::array<double, 4>, 3> rows = {};
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j)
      rows[i][j] = used[i] && used[j] ? matrix[i][j] : (i == j ? 1 : 0);
    rows[i][3] = used[i] ? right[i] : 0;
  }
  for (size_t i = 0; i < 3; ++i) {  // positive definite: no pivots needed
    if (!(rows[i][i] > 1e-12 * (used[i] ? matrix[i][i] : 1))) return std::nullopt;
    for (size_t k = 0; k < 3; ++k) {
      if (k == i) continue;
      const double factor = rows[k][i] / rows[i][i];
      for (size_t j = i; j < 4; ++j) rows[k][j] -= factor * rows[i][j];
    }
  }
  return Vector{rows[0][3] / rows[0][0], rows[1][3] / rows[1][1], rows[2][3] / rows[2][2]};
}

/// The factors, none below zero, with the least squares of (target - sum) / scale.
std::optional<Vector> fit_factors(ScalingModel model, std::span<const ScalingPoint> points,
                                  const std::vector<double>& scales) {
  std::array<Vector, 3> matrix = {};
  Vector right = {};
  for (size_t p = 0; p < points.size(); ++p) {
    const Vector row = terms(model, points[p].units);
    const double weight = 1 / (scales[p] * scales[p]);
    for (size_t i = 0; i < 3; ++i) {
      right[i] += weight * row[i] * target(model, points[p]);
      for (size_t j = 0; j < 3; ++j) matrix[i][j] += weight * row[i] * row[j];
    }
  }
  const bool usl = model == ScalingModel::usl;
  std::optional<Vector> best;
  double least = std::numeric_limits<double>::infinity();
  // So few that every choice of factors that are zero can be tried.
  for (unsigned choice = 1; choice < (usl ? 8 : 4); ++choice) {
    const auto found = solve(matrix, right, {(choice & 1) != 0, (choice & 2) != 0, choice >= 4});
    if (!found || std::any_of(found->begin(), found->end(), [](double f) { return !(f >= 0); })) {
      continue;
    }
    if (usl && (*found)[0] == 0) continue;  // it is 1 / gamma
    double squares = 0;
    for (size_t p = 0; p < points.size(); ++p) {
      const double off =
          (target(model, points[p]) - sum(*found, terms(model, points[p].units))) / scales[p];
      squares += off * off;
    }
    if (squares >= least) continue;
    least = squares;
    best = found;
  }
  return best;
}

double rate_of(const ScalingFit& fit, double units) {
  if (fit.model == ScalingModel::gustafson) return fit.gamma * (units - fit.alpha * (units - 1));
  return fit.gamma * units / (1 + fit.alpha * (units - 1) + fit.beta * units * (units - 1));
}

ScalingFit fit_of(ScalingModel model, const Vector& factors, std::span<const ScalingPoint> points) {
  ScalingFit fit;
  fit.model = model;
  switch (model) {
    case ScalingModel::amdahl:
      fit.gamma = 1 / (factors[0] + factors[1]);
      fit.alpha = factors[1] * fit.gamma;
      break;
    case ScalingModel::gustafson:
      fit.gamma = factors[0] + factors[1];
      fit.alpha = factors[0] / fit.gamma;
      break;
    case ScalingModel::usl:
      fit.gamma = 1 / factors[0];
      fit.alpha = factors[1] / factors[0];
      fit.beta = factors[2] / factors[0];
      break;
  }
  double squares = 0;
  for (const ScalingPoint& point : points) {
    const double off = point.rate / rate_of(fit, point.units) - 1;
    squares += off * off;
    fit.most_units = std::max(fit.most_units, point.units);
  }
  fit.error = std::sqrt(squares / static_cast<double>(points.size()));
  return fit;
}

/// How far off the model is where it has to predict what one number of units gives from the others,
/// as a root mean square; infinite where it cannot.
double prediction_error(ScalingModel model, const std::vector<ScalingPoint>& points) {
  double squares = 0;
  for (const double units : numbers_of_units(points)) {
    std::vector<ScalingPoint> others;
    for (const ScalingPoint& point : points) {
      if (point.units != units) others.push_back(point);
    }
    const auto fit = fit_scaling(model, others);
    if (!fit) return std::numeric_limits<double>::infinity();
    for (const ScalingPoint& point : points) {
      if (point.units != units) continue;
      const double off = std::log(point.rate / rate_of(*fit, units));
      squares += off * off;
    }
  }
  return std::sqrt(squares / static_cast<double>(points.size()));
}

}  // namespace

std::vector<Speedup> speedups(std::span<const ScalingPoint> points) {
  std::map<double, std::pair<double, double>> sums;
  for (const ScalingPoint& point : usable(points)) {
    sums[point.units].first += point.rate;
    sums[point.units].second += 1;
  }
  std::vector<Speedup> rows;
  for (const auto& [units, sum] : sums) {
    Speedup row;
    row.units = units;
    row.rate = sum.first / sum.second;
    const double one = rows.empty() ? row.rate / units : rows[0].rate / rows[0].units;
    row.speedup = row.rate / one;
    row.ideal = row.speedup / units;
    rows.push_back(row);
  }
  return rows;
}

std::optional<ScalingFit> fit_scaling(ScalingModel model, std::span<const ScalingPoint> points) {
  const std::vector<ScalingPoint> good = usable(points);
  if (numbers_of_units(good).size() < parameters_of(model)) return std::nullopt;
  std::vector<double> scales;
  for (const ScalingPoint& point : good) scales.push_back(target(model, point));
  std::optional<Vector> factors;
  // Weights by what was measured would prefer the points whose noise makes them small; so they
  // follow the fit.
  for (int i = 0; i < kReweightings; ++i) {
    const auto next = fit_factors(model, good, scales);
    if (!next) return std::nullopt;
    const double size = (*next)[0] + (*next)[1];
    bool settled = factors.has_value();
    for (size_t k = 0; k < 3 && settled; ++k) {
      settled = std::abs((*next)[k] - (*factors)[k]) < 1e-12 * size;
    }
    factors = next;
    if (settled) break;
    for (size_t p = 0; p < good.size(); ++p) scales[p] = sum(*factors, terms(model, good[p].units));
  }
  return fit_of(model, *factors, good);
}

std::optional<ScalingFit> best_scaling(std::span<const ScalingPoint> points) {
  const std::vector<ScalingPoint> good = usable(points);
  if (numbers_of_units(good).size() < 3) return std::nullopt;
  ScalingModel best = ScalingModel::amdahl;
  double least = prediction_error(best, good);
  for (const ScalingModel model : {ScalingModel::gustafson, ScalingModel::usl}) {
    const double error = prediction_error(model, good);
    if (error >= kClearlyBetter * least) continue;
    least = error;
    best = model;
  }
  return fit_scaling(best, good);
}

ScalingIntervals scaling_intervals(const ScalingFit& fit, std::span<const ScalingPoint> points) {
  const std::vector<ScalingPoint> good = usable(points);
  const auto n = static_cast<double>(good.size());
  const auto used = static_cast<double>(parameters_of(fit.model));
  std::vector<double>
      residuals;  // of logarithms, as large as they were before the fit took its part
  double mean = 0;
  for (const ScalingPoint& point : good) {
    residuals.push_back(std::log(point.rate / rate_of(fit, point.units)));
    mean += residuals.back() / n;
  }
  const double wider = n > used ? std::sqrt(n / (n - used)) : 1;
  for (double& residual : residuals) residual = wider * (residual - mean);
  std::array<std::vector<double>, 3> found;
  Random random(kSeed);
  for (size_t i = 0; i < kResamples; ++i) {
    std::vector<ScalingPoint> drawn = good;
    for (ScalingPoint& point : drawn) {
      point.rate = rate_of(fit, point.units) * std::exp(residuals[random.below(residuals.size())]);
    }
    const auto again = fit_scaling(fit.model, drawn);
    if (!again) continue;
    found[0].push_back(again->gamma);
    found[1].push_back(again->alpha);
    found[2].push_back(again->beta);
  }
  const double t = student_t95(std::max(1.0, n - used)) / 1.959964;
  const auto interval = [&](double value, std::vector<double>& values) {
    if (values.empty()) return Interval{value, value, value};
    std::sort(values.begin(), values.end());
    const auto at = [&](double share) {
      return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
    };
    return Interval{value, std::max(0.0, value + t * (at(0.025) - value)),
                    value + t * (at(0.975) - value)};
  };
  ScalingIntervals intervals = {interval(fit.gamma, found[0]), interval(fit.alpha, found[1]),
                                interval(fit.beta, found[2])};
  if (fit.model != ScalingModel::usl) intervals.alpha.high = std::min(1.0, intervals.alpha.high);
  return intervals;
}

std::optional<double> predicted_rate(const ScalingFit& fit, double units) {
  if (!(units >= 1) || !(units <= kMostExtrapolation * fit.most_units)) return std::nullopt;
  return rate_of(fit, units);
}

std::optional<double> peak_units(const ScalingFit& fit) {
  if (fit.model != ScalingModel::usl || !(fit.beta > 0)) return std::nullopt;
  return fit.alpha < 1 ? std::max(1.0, std::sqrt((1 - fit.alpha) / fit.beta)) : 1.0;
}

std::optional<size_t> worthwhile_units(const ScalingFit& fit, double worth) {
  for (size_t units = 1; units < kMostUnits; ++units) {
    const auto now = predicted_rate(fit, static_cast<double>(units));
    const auto next = predicted_rate(fit, static_cast<double>(units + 1));
    if (!now || !next) return std::nullopt;
    if (*next - *now < worth * fit.gamma) return units;
  }
  return std::nullopt;
}

std::string scaling_advice(std::span<const ScalingPoint> points, std::string_view unit) {
  const std::vector<Speedup> rows = speedups(points);
  if (rows.empty()) return fmt::format("No {} was measured.", unit);
  const Speedup& last = rows.back();
  const std::string several = fmt::format("{}{}", unit, unit.ends_with('s') ? "es" : "s");
  std::string text = fmt::format("{:g} {}: {:.1f}x ({:.0f} % of ideal).", last.units,
                                 last.units == 1 ? unit : several, last.speedup, 100 * last.ideal);
  const auto fit = best_scaling(points);
  if (!fit)
    return text +
           fmt::format(" Measure three numbers of {} or more to know where it ends.", several);
  const auto enough = worthwhile_units(*fit);
  if (!enough) {
    return text + fmt::format(
                      " Each further {} brings 50 % or more, as far as can be seen from {:g}. Ask "
                      "for {:g}, or measure more.",
                      unit, last.units, last.units);
  }
  if (static_cast<double>(*enough) > last.units) {
    return text + fmt::format(" Up to {} each further {} should bring 50 % or more. Measure {}.",
                              *enough, unit, *enough);
  }
  return text + fmt::format(" Beyond {} each further {} brings under 50 %. Ask for {}.", *enough,
                            unit, *enough);
}

}  // namespace stoker
