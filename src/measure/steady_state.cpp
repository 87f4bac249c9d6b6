// SPDX-License-Identifier: Apache-2.0
#include "measure/steady_state.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "measure/change_points.h"
#include "measure/trend.h"

namespace stoker {
namespace {

using Kind = SteadyState::Kind;
using Cause = SteadyState::Cause;

constexpr size_t kShortRun = 60;         // steps; fewer go to MSER-5
constexpr size_t kShortestRun = 20;      // steps; four batches of MSER-5
constexpr size_t kBatch = 5;             // of MSER-5 (White 1997)
constexpr size_t kLeastSteady = 50;      // steps that the steady part must have
constexpr double kLeastShare = 0.2;      // of the run that it must have
constexpr double kTolerance = 0.02;      // of the mean: a smaller difference is none
constexpr double kSigmas = 3;            // standard errors: a smaller difference may be chance
constexpr double kDriftSigmas = 4;       // the same for a slope, for which every run is looked at
constexpr double kLeastDrift = 0.05;     // of the mean, from begin to end
constexpr size_t kMostValues = 600;      // that curves are fitted to
constexpr size_t kStairs = 4;            // phases in one direction are a drift in steps, where the
constexpr double kLastStair = 0.35;      // last has less than this share of the run
constexpr size_t kTurns = 3;             // up, down, up, down: that is a cycle
constexpr size_t kStationaryTurns = 20;  // ten cycles average out

/// The steps that change points are looked for in, with the places they had.
struct Series {
  std::vector<double> values;
  std::vector<size_t> places;
};

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

Series valid_steps(std::span<const double> seconds) {
  Series valid;
  for (size_t i = 0; i < seconds.size(); ++i) {
    // Beyond 1e100 squares overflow; no clock shows that.
    if (!(seconds[i] >= 0 && seconds[i] < 1e100)) continue;
    valid.values.push_back(seconds[i]);
    valid.places.push_back(i);
  }
  return valid;
}

double variance_of_mean(std::span<const double> values) {
  const double mean = mean_of(values), n = static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return values.size() < 2 ? 0 : squares / (n - 1) / n;
}

/// MSER-5: how many batches to leave out so that the mean of the rest is most certain.
size_t mser_cut(std::span<const double> values) {
  std::vector<double> means;
  for (size_t i = 0; i + kBatch <= values.size(); i += kBatch) {
    means.push_back(mean_of(values.subspan(i, kBatch)));
  }
  size_t cut = 0;
  double least = std::numeric_limits<double>::infinity();
  for (size_t d = 0; d + 1 < means.size(); ++d) {
    const auto rest = std::span(means).subspan(d);
    const auto count = static_cast<double>(rest.size());
    const double now = variance_of_mean(rest) * (count - 1) / count;
    if (now >= least * (1 - 1e-9)) continue;
    least = now;
    cut = d;
  }
  return cut;
}

void judge_short(const Series& valid, SteadyState& state) {
  if (valid.values.size() < kShortestRun) return;
  const size_t leading = find_spikes(valid.values, {}).leading;
  const auto rest = std::span(valid.values).subspan(leading);
  if (rest.size() < kShortestRun) return;
  size_t cut = mser_cut(rest) * kBatch;
  const double before = mean_of(rest.first(cut)), after = mean_of(rest.subspan(cut));
  const double error = variance_of_mean(rest.first(cut)) + variance_of_mean(rest.subspan(cut));
  const double allowed = std::max(kTolerance * after, kSigmas * std::sqrt(error));
  if (std::abs(before - after) <= allowed) cut = 0;  // chance
  if (2 * cut > rest.size()) return;                 // in the second half: not converged
  state.cause = Cause::settled;
  state.kind = cut + leading == 0           ? Kind::flat
               : cut == 0 || before > after ? Kind::warm_up
                                            : Kind::slow_down;
  state.mean = state.mean_all = mean_of(rest.subspan(cut));
  state.from_step = valid.places[leading + cut];
  if (state.kind != Kind::flat) state.changes = {state.from_step};
  if (state.kind == Kind::flat) state.from_step = 0;
}

/// How often the phases turn from slower to faster or back, by more than a third of their range.
size_t turns_of(const std::vector<Phase>& phases) {
  double low = phases[0].mean, high = low;
  for (const Phase& phase : phases) {
    low = std::min(low, phase.mean);
    high = std::max(high, phase.mean);
  }
  const double enough = (high - low) / 3;
  size_t turns = 0;
  int direction = 0;
  double extreme = phases[0].mean;
  for (const Phase& phase : phases) {
    const double moved = phase.mean - extreme;
    if (direction == 0 ? std::abs(moved) > enough : -moved * direction > enough) {
      turns += direction != 0 ? 1 : 0;
      direction = moved > 0 ? 1 : -1;
      extreme = phase.mean;
    } else if (moved * direction > 0) {
      extreme = phase.mean;
    }
  }
  return turns;
}

/// Whether fifths of the run have the same mean, as those of a run with many short cycles have.
bool is_stationary(std::span<const double> values, double range) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (size_t i = 0; i < 5; ++i) {
    const size_t begin = values.size() * i / 5, end = values.size() * (i + 1) / 5;
    const double mean = mean_of(values.subspan(begin, end - begin));
    low = std::min(low, mean);
    high = std::max(high, mean);
  }
  return high - low < std::max(2 * kTolerance * high, range / 4);
}

Cause late_cause(const std::vector<Phase>& phases) {
  if (phases.size() > 3) return Cause::ends_unsteady;
  const Phase& last = phases.back();
  const Phase& before = phases[phases.size() - 2];
  return last.mean > before.mean ? Cause::late_slower : Cause::late_faster;
}

double range_of(const std::vector<Phase>& phases) {
  const auto [low, high] = std::minmax_element(
      phases.begin(), phases.end(), [](const Phase& a, const Phase& b) { return a.mean < b.mean; });
  return high->mean - low->mean;
}

/// A curve, where that fits better than the phases do.
std::optional<Trend> smooth_trend(std::span<const double> values, const std::vector<Phase>& phases,
                                  const Noise& noise) {
  const size_t by = (values.size() + kMostValues - 1) / kMostValues;
  std::vector<double> means;
  double squares = 0;
  for (size_t i = 0, k = 0; i < values.size();) {
    const size_t begin = i, end = std::min(i + by, values.size());
    double sum = 0, stairs = 0;
    for (; i < end; ++i) {
      if (i == phases[k].end) ++k;
      sum += values[i];
      stairs += phases[k].mean;
    }
    const double off = (sum - stairs) / static_cast<double>(end - begin);
    means.push_back(sum / static_cast<double>(end - begin));
    squares += off * off;
  }
  const double level = phases.back().mean;
  Trend trend = fit_trend(means, std::max(kTolerance * level, noise.sigma / 2), kTolerance * level);
  if (trend.squares >= squares || trend.levels_at == 0) return std::nullopt;
  trend.levels_at = std::min(trend.levels_at * by, values.size());
  trend.ends_at = std::min(trend.ends_at * by, values.size());
  return trend;
}

/// Many small steps in one direction, up to the end.
bool is_staircase(const std::vector<Phase>& phases) {
  const Phase& last = phases.back();
  const bool up = last.mean > phases[0].mean;
  const bool one_way = std::is_sorted(
      phases.begin(), phases.end(),
      [&](const Phase& a, const Phase& b) { return up ? a.mean < b.mean : b.mean < a.mean; });
  return one_way && phases.size() >= kStairs &&
         static_cast<double>(last.end - last.begin) < kLastStair * static_cast<double>(last.end);
}

/// Sets kind and cause. The last of `phases` is then the steady one; where all are, there is only
/// it.
void judge(std::span<const double> values, const Noise& noise, std::vector<Phase>& phases,
           SteadyState& state) {
  const size_t turns = turns_of(phases);
  if (turns >= kStationaryTurns && is_stationary(values, range_of(phases))) {
    phases = {Phase{0, values.size(), mean_of(values), 0}};
  } else if (turns >= kTurns) {
    state.cause = Cause::cyclic;
    return;
  }
  if (phases.size() == 1 && has_slow_cycle(values, noise, kLeastDrift)) {
    state.cause = Cause::cyclic;
    return;
  }
  const auto drift = [&](bool rises) {
    state.cause = rises ? Cause::drift_slower : Cause::drift_faster;
  };
  const auto n = static_cast<double>(values.size());
  const auto least = static_cast<size_t>(std::max<double>(kLeastSteady, kLeastShare * n));
  const Phase last = phases.back();
  if (phases.size() == 1) {
    if (const int way = creeps(values, noise, kLeastDrift, kDriftSigmas); way != 0) {
      return drift(way > 0);
    }
  } else if (is_staircase(phases)) {
    return drift(last.mean > phases[0].mean);
  } else if (const auto trend = smooth_trend(values, phases, noise)) {
    if (trend->ends_at + least > values.size()) return drift(trend->rises);
    phases.back().begin = trend->levels_at;
    while (phases.size() > 2 && phases[phases.size() - 2].begin >= trend->levels_at) {
      phases.erase(phases.end() - 2);
    }
  } else if (last.end - last.begin < least) {
    state.cause = late_cause(phases);
    return;
  }
  const auto steady = values.subspan(phases.back().begin);
  if (const int way = creeps(steady.subspan(steady.size() / 2), noise, kLeastDrift, kDriftSigmas);
      way != 0) {
    return drift(way > 0);
  }
  state.cause = Cause::settled;
  state.kind = Kind::flat;
  if (phases.size() == 1) return;
  // Within tolerance: a neighbour that came and went leaves the speed of before.
  const bool fastest = std::all_of(phases.begin(), phases.end(), [&](const Phase& phase) {
    return last.mean <= (1 + kTolerance) * phase.mean;
  });
  state.kind = fastest ? Kind::warm_up : Kind::slow_down;
}

void judge_long(const Series& valid, const Spikes& spikes, SteadyState& state) {
  Series kept;
  for (size_t i = 0; i < valid.values.size(); ++i) {
    if (spikes.kept[i] == 0) continue;
    kept.values.push_back(valid.values[i]);
    kept.places.push_back(valid.places[i]);
  }
  const Noise noise = noise_of(kept.values);
  std::vector<Phase> phases =
      merge_equal(kept.values, find_phases(kept.values, noise), noise, kTolerance, kSigmas);
  judge(kept.values, noise, phases, state);
  if (spikes.leading > 0) state.changes.push_back(kept.places.front());
  for (size_t i = 1; i < phases.size(); ++i) state.changes.push_back(kept.places[phases[i].begin]);
  if (state.kind == Kind::flat && spikes.leading > 0) state.kind = Kind::warm_up;
  const size_t begin = state.kind == Kind::none ? 0 : phases.back().begin;
  if (state.kind == Kind::warm_up || state.kind == Kind::slow_down) {
    state.from_step = kept.places[begin];
  }
  state.mean = mean_of(std::span(kept.values).subspan(begin));
  const auto first = std::lower_bound(valid.places.begin(), valid.places.end(), state.from_step);
  state.mean_all =
      mean_of(std::span(valid.values).subspan(static_cast<size_t>(first - valid.places.begin())));
}

}  // namespace

SteadyState steady_state(std::span<const double> seconds, std::span<const size_t> boundaries) {
  SteadyState state;
  const Series valid = valid_steps(seconds);
  state.dropped = seconds.size() - valid.values.size();
  state.mean = state.mean_all = mean_of(valid.values);
  if (valid.values.size() < kShortRun) {
    judge_short(valid, state);
    return state;
  }
  std::vector<size_t> known;
  for (const size_t step : boundaries) {
    const auto at = std::lower_bound(valid.places.begin(), valid.places.end(), step);
    if (at != valid.places.end() && *at == step) {
      known.push_back(static_cast<size_t>(at - valid.places.begin()));
    }
  }
  Spikes spikes = find_spikes(valid.values, known);
  judge_long(valid, spikes, state);
  state.periodic = std::move(spikes.periodic);
  state.outliers = std::move(spikes.outliers);
  for (Periodic& periodic : state.periodic) periodic.first = valid.places[periodic.first];
  for (size_t& step : state.outliers) step = valid.places[step];
  return state;
}

}  // namespace stoker
