// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stoker {

/// A value and where the truth lies with a probability of 95 %.
struct Interval {
  double value = 0, low = 0, high = 0;
};

/// A measured figure with the digits that it deserves: "1,234", "12.3", "1e+20".
std::string figure_text(double value);

/// "36 to 114"; "at least 36" where there is no upper end, as a short run may have none.
std::string range_text(const Interval& interval, std::string (*number)(double));

/// "1.25x (1.10 to 1.40, 95 %)".
std::string ratio_text(const Interval& ratio);

/// The mean of consecutive values, which may depend on those before them. The same values give the
/// same interval. Nothing for less than two values.
std::optional<Interval> mean_interval(std::span<const double> values);

/// Samples per second: all samples by all seconds, step by step drawn together. Nothing for less
/// than two steps, or where no time passed. REQUIRES: as many samples as seconds.
std::optional<Interval> throughput_interval(std::span<const double> samples,
                                            std::span<const double> seconds);

/// The mean over repeated runs, from one figure for each; covers what differs from run to run,
/// which no single run shows. Nothing for less than two runs.
std::optional<Interval> runs_interval(std::span<const double> runs);

struct RateComparison {
  enum class Verdict { faster, slower, no_difference };
  Verdict verdict = Verdict::no_difference;  // of the rate beside the baseline
  Interval ratio;                            // rate / baseline
};

std::string_view name_of(RateComparison::Verdict verdict);

/// Compares two rates that were measured independently of each other. Nothing unless both are
/// above zero.
std::optional<RateComparison> compare(const Interval& rate, const Interval& baseline);

struct Distribution {
  double p5 = 0, p25 = 0, median = 0, p75 = 0, p95 = 0, p99 = 0;
  double jitter = 0;  // 1.4826 times the median distance to the median: sigma, were it normal
};

/// Nothing for no values. Between two values a percentile lies on the line through them.
std::optional<Distribution> distribution_of(std::span<const double> values);

/// The t that a Student variable stays within with a probability of 95 %. REQUIRES: freedom >= 1.
double student_t95(double freedom);

/// The length of blocks in which to resample `values`: Politis and White 2004, corrected 2009.
size_t block_length(std::span<const double> values);

}  // namespace stoker
