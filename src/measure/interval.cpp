// SPDX-License-Identifier: Apache-2.0
#include "measure/interval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

#include "base/units.h"
#include "measure/random.h"

namespace stoker {
namespace {

constexpr size_t kResamples = 2000;  // the ends then vary by 2 % of the width
constexpr uint64_t kSeed = 0x5EED;
constexpr double kMostRho = 0.95;
constexpr size_t kMostOrder = 8, kValuesPerOrder = 20;

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double quantile(std::span<const double> sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - static_cast<double>(below));
}

/// Sum of products of values `lag` apart, divided by their number. REQUIRES: mean 0.
double autocovariance(std::span<const double> values, size_t lag) {
  double sum = 0;
  for (size_t i = lag; i < values.size(); ++i) sum += values[i] * values[i - lag];
  return sum / static_cast<double>(values.size());
}

/// What a value takes over from those before it, the last one first: an autoregression whose order
/// has the lowest Akaike criterion.
std::vector<double> carried_over(std::span<const double> deviations) {
  const double variance = autocovariance(deviations, 0);
  const auto n = static_cast<double>(deviations.size());
  if (!(variance > 0) || n < 8) return {};
  const auto most = std::min(kMostOrder, deviations.size() / kValuesPerOrder);
  std::vector<double> now, best;
  double left = variance, least = n * std::log(variance);
  for (size_t order = 1; order <= most; ++order) {  // Levinson and Durbin
    double reflection = autocovariance(deviations, order);
    for (size_t i = 0; i < now.size(); ++i) {
      reflection -= now[i] * autocovariance(deviations, order - 1 - i);
    }
    reflection /= left;
    std::vector<double> next = now;
    for (size_t i = 0; i < now.size(); ++i) next[i] -= reflection * now[now.size() - 1 - i];
    next.push_back(reflection);
    now = std::move(next);
    left *= 1 - reflection * reflection;
    if (!(left > 1e-9 * variance)) break;
    const double criterion = n * std::log(left) + 2 * static_cast<double>(order);
    if (criterion >= least) continue;
    least = criterion;
    best = now;
  }
  return best;
}

/// What is new in each value, with the mean 0. The first values, which have too few before them,
/// are left out.
std::vector<double> without_carried(std::span<const double> deviations,
                                    const std::vector<double>& carried) {
  std::vector<double> fresh;
  for (size_t i = std::max<size_t>(1, carried.size()); i < deviations.size(); ++i) {
    fresh.push_back(deviations[i]);
    for (size_t k = 0; k < carried.size(); ++k) fresh.back() -= carried[k] * deviations[i - 1 - k];
  }
  const double mean = mean_of(fresh);
  for (double& value : fresh) value -= mean;
  return fresh;
}

/// Their sum, which decides how wide the interval is. For one, the estimate from n values is too
/// low by (1 + 3 rho) / n (Kendall 1954); for more the same is a good guess.
double sum_of_carried(const std::vector<double>& carried, double n) {
  if (carried.empty()) return 0;
  const double sum = std::accumulate(carried.begin(), carried.end(), 0.0);
  return std::clamp((sum + static_cast<double>(carried.size()) / n) / (1 - 3 / n), -0.5, kMostRho);
}

/// Means of `values` resampled in blocks that wrap around at the end, sorted.
std::vector<double> resampled_means(std::span<const double> values, size_t length) {
  const size_t n = values.size();
  std::vector<double> sums(n + length + 1);
  for (size_t i = 0; i < n + length; ++i) sums[i + 1] = sums[i] + values[i % n];
  Random random(kSeed);
  std::vector<double> means(kResamples);
  for (double& mean : means) {
    double sum = 0;
    for (size_t taken = 0; taken < n;) {
      const size_t count = std::min(length, n - taken), from = random.below(n);
      sum += sums[from + count] - sums[from];
      taken += count;
    }
    mean = sum / static_cast<double>(n);
  }
  std::sort(means.begin(), means.end());
  return means;
}

}  // namespace

std::string figure_text(double value) {
  constexpr double kMostDigits = 1e15;
  return value >= 100 && value < kMostDigits ? format_count(static_cast<uint64_t>(value + 0.5))
                                             : fmt::format("{:.3g}", value);
}

std::string range_text(const Interval& interval, std::string (*number)(double)) {
  return std::isfinite(interval.high) ? number(interval.low) + " to " + number(interval.high)
                                      : "at least " + number(interval.low);
}

std::string ratio_text(const Interval& ratio) {
  const auto number = [](double value) { return fmt::format("{:.2f}", value); };
  return fmt::format("{}x ({}, 95 %)", number(ratio.value), range_text(ratio, number));
}

size_t block_length(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  if (values.size() < 8) return 1;
  const double variance = autocovariance(values, 0);
  if (!(variance > 0)) return 1;
  const double significant = 2 * std::sqrt(std::log10(n) / n);
  const auto quiet = std::max<size_t>(5, static_cast<size_t>(std::sqrt(std::log10(n))));
  const auto most = static_cast<size_t>(std::ceil(std::sqrt(n))) + quiet;
  std::vector<double> rho;
  for (size_t k = 0; k <= std::min(most, values.size() - 1); ++k) {
    rho.push_back(autocovariance(values, k) / variance);
  }
  size_t last = 0;  // lag behind which nothing is significant for a while
  for (size_t k = 1; k < rho.size() && k <= last + quiet; ++k) {
    if (std::abs(rho[k]) > significant) last = k;
  }
  const size_t window = std::min(std::max<size_t>(1, 2 * last), rho.size() - 1);
  double slope = 0, total = 1;
  for (size_t k = 1; k <= window; ++k) {
    const double share = static_cast<double>(k) / static_cast<double>(window);
    const double weight = share <= 0.5 ? 1 : 2 * (1 - share);  // flat-top
    slope += 2 * weight * static_cast<double>(k) * rho[k];
    total += 2 * weight * rho[k];
  }
  const double best = std::cbrt(1.5 * slope * slope / (total * total) * n);
  return static_cast<size_t>(
      std::clamp(std::ceil(best), 1.0, std::ceil(std::min(3 * std::sqrt(n), n / 3))));
}

std::optional<Interval> mean_interval(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const double mean = mean_of(values);
  const auto n = static_cast<double>(values.size());
  std::vector<double> deviations(values.begin(), values.end());
  for (double& value : deviations) value -= mean;
  // Blocks alone make the interval of a strongly correlated series too narrow: they cut what
  // reaches across. So what a value takes over from those before goes first, and comes back as the
  // factor 1 / (1 - rho) that it has on the mean (prewhitening).
  const std::vector<double> carried = carried_over(deviations);
  const double rho = sum_of_carried(carried, n);
  const std::vector<double> fresh = without_carried(deviations, carried);
  const auto least = static_cast<size_t>(std::cbrt(n));  // costs nothing and saves time
  const size_t length = std::max(least, block_length(fresh));
  const std::vector<double> means = resampled_means(fresh, length);
  // Few independent values: Student instead of normal, and the variance of n blocks is too small
  // by length / n.
  const double independent = n * (1 - rho) / (1 + rho);
  const double freedom = std::max(1.0, independent - 1);
  const double scale = student_t95(freedom) / 1.959964 *
                       std::sqrt(n / (n - static_cast<double>(length))) / (1 - rho);
  return Interval{mean, mean + scale * quantile(means, 0.025),
                  mean + scale * quantile(means, 0.975)};
}

std::optional<Interval> throughput_interval(std::span<const double> samples,
                                            std::span<const double> seconds) {
  if (seconds.size() < 2) return std::nullopt;
  const double all_samples = mean_of(samples), all_seconds = mean_of(seconds);
  if (!(all_samples > 0) || !(all_seconds > 0)) return std::nullopt;
  // Seconds per sample as a mean over steps: exact where steps have the same number of samples, and
  // to first order where they have not.
  const double each = all_seconds / all_samples;
  std::vector<double> parts(seconds.size());
  for (size_t i = 0; i < seconds.size(); ++i) {
    parts[i] = each + (seconds[i] - each * samples[i]) / all_samples;
  }
  const Interval found = *mean_interval(parts);
  // A lower end at or below zero says nothing about how fast it may be.
  const double high = found.low > 0 ? 1 / found.low : std::numeric_limits<double>::infinity();
  return Interval{1 / each, 1 / found.high, high};
}

std::optional<Interval> runs_interval(std::span<const double> runs) {
  if (runs.size() < 2) return std::nullopt;
  const double mean = mean_of(runs);
  const auto n = static_cast<double>(runs.size());
  double squares = 0;
  for (const double run : runs) squares += (run - mean) * (run - mean);
  const double half = student_t95(n - 1) * std::sqrt(squares / (n - 1) / n);
  return Interval{mean, mean - half, mean + half};
}

std::string_view name_of(RateComparison::Verdict verdict) {
  switch (verdict) {
    case RateComparison::Verdict::faster:
      return "faster";
    case RateComparison::Verdict::slower:
      return "slower";
    case RateComparison::Verdict::no_difference:
      break;
  }
  return "no difference";
}

std::optional<RateComparison> compare(const Interval& rate, const Interval& baseline) {
  if (!(rate.low > 0) || !(baseline.low > 0)) return std::nullopt;
  // Distances of independent logarithms add as squares, each side with the end that belongs to it.
  const double down =
      std::hypot(std::log(rate.value / rate.low), std::log(baseline.high / baseline.value));
  const double up =
      std::hypot(std::log(rate.high / rate.value), std::log(baseline.value / baseline.low));
  const double ratio = rate.value / baseline.value;
  RateComparison found;
  found.ratio = {ratio, ratio * std::exp(-down), ratio * std::exp(up)};
  if (found.ratio.low > 1) found.verdict = RateComparison::Verdict::faster;
  if (found.ratio.high < 1) found.verdict = RateComparison::Verdict::slower;
  return found;
}

std::optional<Distribution> distribution_of(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  Distribution found;
  found.p5 = quantile(sorted, 0.05);
  found.p25 = quantile(sorted, 0.25);
  found.median = quantile(sorted, 0.5);
  found.p75 = quantile(sorted, 0.75);
  found.p95 = quantile(sorted, 0.95);
  found.p99 = quantile(sorted, 0.99);
  for (double& value : sorted) value = std::abs(value - found.median);
  std::sort(sorted.begin(), sorted.end());
  found.jitter = 1.4826 * quantile(sorted, 0.5);
  return found;
}

double student_t95(double freedom) {
  // Hill 1970 (CACM 396), within 0.05 % as of 2; below that the widest.
  if (freedom < 2) return std::tan(0.475 * std::numbers::pi);
  const double a = 1 / (freedom - 0.5), b = 48 / (a * a);
  double c = ((20700 * a / b - 98) * a - 16) * a + 96.36;
  const double d = ((94.5 / (b + c) - 3) / b + 1) * std::sqrt(a * std::numbers::pi / 2) * freedom;
  double y = std::pow(0.05 * d, 2 / freedom);
  if (y > 0.05 + a) {
    double x = -1.959964;
    y = x * x;
    if (freedom < 5) c += 0.3 * (freedom - 4.5) * (x + 0.6);
    c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c;
    y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x;
    y = std::expm1(a * y * y);
  } else {
    y = ((1 / (((freedom + 6) / (freedom * y) - 0.089 * d - 0.822) * (freedom + 2) * 3) +
          0.5 / (freedom + 4)) *
             y -
         1) *
            (freedom + 1) / (freedom + 2) +
        1 / y;
  }
  return std::sqrt(freedom * y);
}

}  // namespace stoker
