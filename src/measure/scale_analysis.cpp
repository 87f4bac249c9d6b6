// SPDX-License-Identifier: Apache-2.0
#include "measure/scale_analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

/// The whole number beside the peak of a curve at which its rate is higher.
uint64_t whole_peak(const ScalingFit& fit, double peak) {
  const double low = std::floor(peak);
  const auto below = predicted_rate(fit, low);
  const auto above = predicted_rate(fit, low + 1);
  return static_cast<uint64_t>(above && (!below || *above > *below) ? low + 1 : low);
}

/// By the curve where that has a peak near what was measured; else by two widths of which the
/// wider one was slower for sure.
std::optional<uint64_t> peak_of(const std::optional<ScalingFit>& best,
                                const std::vector<ScaleWidth>& widths) {
  if (best) {
    const auto peak = peak_units(*best);
    if (peak && *peak <= kMostExtrapolation * best->most_units) return whole_peak(*best, *peak);
  }
  if (widths.empty()) return std::nullopt;
  const auto top = std::max_element(widths.begin(), widths.end(),
                                    [](const auto& a, const auto& b) { return a.rate < b.rate; });
  const ScaleWidth& last = widths.back();
  if (top->n == last.n || !top->interval || !last.interval) return std::nullopt;
  const auto compared = compare(*last.interval, *top->interval);
  if (!compared || compared->verdict != RateComparison::Verdict::slower) return std::nullopt;
  return top->n;
}

// Models that are off by less than this, or by not much more than the best one, may be right, too.
constexpr double kGood = 0.02;
constexpr double kAsGood = 2;
constexpr double kPoor = 0.1;

/// The fit, and those at the ends of its intervals: parameters that are all high, or all low.
std::vector<ScalingFit> extremes_of(const FittedModel& model) {
  std::vector<ScalingFit> fits(3, model.fit);
  fits[1].alpha = model.intervals.alpha.low;
  fits[1].beta = model.intervals.beta.low;
  fits[2].alpha = model.intervals.alpha.high;
  fits[2].beta = model.intervals.beta.high;
  return fits;
}

ScalePrediction prediction_at(uint64_t n, const ScaleAnalysis& analysis, ScaleAxis axis) {
  ScalePrediction prediction;
  prediction.n = n;
  const auto best = std::find_if(analysis.fits.begin(), analysis.fits.end(),
                                 [](const FittedModel& each) { return each.best; });
  if (best == analysis.fits.end()) {
    prediction.refused = "three widths or more must be measured";
    return prediction;
  }
  const auto rate = predicted_rate(best->fit, static_cast<double>(n));
  if (!rate) {
    prediction.refused = fmt::format("more than {:g} times the {:g} {} that were measured",
                                     kMostExtrapolation, best->fit.most_units, name_of(axis));
    return prediction;
  }
  Interval interval{*rate, *rate, *rate};
  for (const FittedModel& each : analysis.fits) {
    if (each.fit.error > std::max(kAsGood * best->fit.error, kGood)) continue;
    for (const ScalingFit& fit : extremes_of(each)) {
      const double other = predicted_rate(fit, static_cast<double>(n)).value_or(*rate);
      interval.low = std::min(interval.low, other);
      interval.high = std::max(interval.high, other);
    }
  }
  prediction.rate = interval;
  return prediction;
}

}  // namespace

std::string_view name_of(ScalingModel model) {
  switch (model) {
    case ScalingModel::amdahl:
      return "amdahl";
    case ScalingModel::gustafson:
      return "gustafson";
    case ScalingModel::usl:
      break;
  }
  return "usl";
}

ScaleAnalysis analyse_scale(const ScaleResult& result, ScaleAxis axis,
                            const std::vector<uint64_t>& predict) {
  ScaleAnalysis analysis;
  const auto best = best_scaling(result.points);
  for (const ScalingModel model :
       {ScalingModel::amdahl, ScalingModel::gustafson, ScalingModel::usl}) {
    const auto fit = fit_scaling(model, result.points);
    if (!fit) continue;
    analysis.fits.push_back(
        {*fit, scaling_intervals(*fit, result.points), best && best->model == model});
  }
  analysis.advice = scaling_advice(result.points, unit_of(axis));
  if (best) analysis.worthwhile = worthwhile_units(*best);
  if (best && best->error > kPoor) {
    analysis.doubt = fmt::format(
        "No curve fits well (the best is off by {:.0f} %), so take the advice with care: run it "
        "when "
        "the machine is quiet, longer, or with more --repeat.",
        100 * best->error);
  }
  analysis.hurts_beyond = peak_of(best, result.widths);
  for (const uint64_t n : predict) {
    analysis.predictions.push_back(prediction_at(n, analysis, axis));
  }
  return analysis;
}

}  // namespace stoker
