// SPDX-License-Identifier: Apache-2.0
#include "measure/interval.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "measure/random.h"

namespace stoker {
namespace {

/// Values with the mean 1 and the standard deviation 0.1. Where `skewed`, what is new in each is
/// log-normal with a skewness of 3.7.
std::vector<double> autocorrelated(Random& random, size_t size, double rho, bool skewed) {
  constexpr double kShape = 0.8;
  const auto fresh = [&] {
    if (!skewed) return random.normal();
    const double value = std::exp(kShape * random.normal() - kShape * kShape / 2);
    return (value - 1) / std::sqrt(std::expm1(kShape * kShape));
  };
  const double share = std::sqrt(1 - rho * rho);
  double state = 0;
  for (int i = 0; i < 100; ++i) state = rho * state + share * fresh();
  std::vector<double> values(size);
  for (double& value : values) {
    value = 1 + 0.1 * state;
    state = rho * state + share * fresh();
  }
  return values;
}

size_t log_uniform(Random& random, double low, double high) {
  return static_cast<size_t>(std::exp(random.uniform(std::log(low), std::log(high))));
}

bool covers(const Interval& interval, double truth) {
  return interval.low <= truth && truth <= interval.high;
}

TEST(MeanInterval, HoldsTheTrueMeanIn95Of100Runs) {
  constexpr int kRuns = 2000;
  Random random(20'262);
  std::array<int, 9> runs = {}, held = {};
  int all = 0;
  for (int i = 0; i < kRuns; ++i) {
    const size_t tenths = static_cast<size_t>(i) % runs.size();
    const auto values = autocorrelated(random, log_uniform(random, 100, 2000),
                                       0.1 * static_cast<double>(tenths), i % 2 == 1);
    const bool holds = covers(mean_interval(values).value(), 1);
    ++runs[tenths];
    held[tenths] += holds ? 1 : 0;
    all += holds ? 1 : 0;
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    const double share = 100.0 * held[i] / runs[i];
    fmt::print("rho 0.{}: {:.1f} % of {}\n", i, share, runs[i]);
    // 222 runs each: 95 % with a standard error of 1.5 %
    EXPECT_GE(share, 90) << i;
    EXPECT_LE(share, 99) << i;
  }
  fmt::print("all: {:.2f} %\n", 100.0 * all / kRuns);
  EXPECT_GE(all, 0.93 * kRuns);
  EXPECT_LE(all, 0.97 * kRuns);
}

TEST(MeanInterval, BlocksCoverWhatIsNoAr1) {
  // Fast noise on a slow wander: the autocorrelation falls at first and then stays.
  Random random(3);
  int held = 0;
  for (int i = 0; i < 500; ++i) {
    const size_t size = log_uniform(random, 500, 2000);
    std::vector<double> values = autocorrelated(random, size, 0.9, false);
    for (double& value : values) value += 0.1 * random.normal();
    held += covers(mean_interval(values).value(), 1) ? 1 : 0;
  }
  fmt::print("slow wander under noise: {:.1f} %\n", held / 5.0);
  EXPECT_GE(held, 0.88 * 500);
}

TEST(MeanInterval, SameValuesSameInterval) {
  Random random(1);
  const auto values = autocorrelated(random, 300, 0.5, false);
  const Interval one = mean_interval(values).value(), two = mean_interval(values).value();
  EXPECT_EQ(one.low, two.low);
  EXPECT_EQ(one.high, two.high);
  EXPECT_LT(one.low, one.value);
  EXPECT_GT(one.high, one.value);
}

TEST(MeanInterval, SmallAndEvenInput) {
  EXPECT_FALSE(mean_interval({}));
  EXPECT_FALSE(mean_interval(std::vector<double>{1.0}));
  for (size_t size = 2; size < 40; ++size) {
    const Interval even = mean_interval(std::vector<double>(size, 0.25)).value();
    EXPECT_EQ(even.low, 0.25);
    EXPECT_EQ(even.high, 0.25);
    std::vector<double> line(size);
    for (size_t i = 0; i < size; ++i) line[i] = static_cast<double>(i);
    const Interval found = mean_interval(line).value();
    EXPECT_TRUE(std::isfinite(found.low) && std::isfinite(found.high)) << size;
    EXPECT_LE(found.low, found.high) << size;
  }
}

TEST(Throughput, IsAllSamplesByAllSeconds) {
  const std::vector<double> seconds = {1, 2, 1, 2, 1, 2, 1, 2, 1, 2};
  const std::vector<double> samples(10, 60.0);
  const Interval rate = throughput_interval(samples, seconds).value();
  EXPECT_DOUBLE_EQ(rate.value, 40);  // 600 samples in 15 s; the mean of the rates would be 45
  EXPECT_LT(rate.low, 40);
  EXPECT_GT(rate.high, 40);
  EXPECT_FALSE(throughput_interval(samples, std::vector<double>(10, 0.0)));
  EXPECT_FALSE(throughput_interval(std::vector<double>(10, 0.0), seconds));
  EXPECT_FALSE(throughput_interval({}, {}));
}

TEST(Throughput, StepsWithMoreSamplesMayTakeLonger) {
  // Seconds follow samples exactly: the rate is certain though the steps vary by a factor of 3.
  std::vector<double> samples, seconds;
  Random random(4);
  for (int i = 0; i < 200; ++i) {
    samples.push_back(random.uniform(20, 60));
    seconds.push_back(samples.back() / 100);
  }
  const Interval exact = throughput_interval(samples, seconds).value();
  EXPECT_NEAR(exact.value, 100, 1e-9);
  EXPECT_NEAR(exact.low, 100, 1e-6);
  EXPECT_NEAR(exact.high, 100, 1e-6);
  int held = 0;
  for (int run = 0; run < 500; ++run) {
    const auto noise = autocorrelated(random, 200, 0.5, true);
    for (size_t i = 0; i < 200; ++i) {
      samples[i] = random.uniform(20, 60);
      seconds[i] = samples[i] / 100 * noise[i];
    }
    held += covers(throughput_interval(samples, seconds).value(), 100) ? 1 : 0;
  }
  EXPECT_GE(held, 0.92 * 500);
  EXPECT_LE(held, 0.98 * 500);
}

TEST(RunsInterval, IsStudents) {
  // Mean 12, s = 2, t(2) = 4.3027: 12 -+ 4.3027 * 2 / sqrt(3)
  const Interval runs = runs_interval(std::vector<double>{10.0, 12.0, 14.0}).value();
  EXPECT_DOUBLE_EQ(runs.value, 12);
  EXPECT_NEAR(runs.low, 12 - 4.968, 0.005);
  EXPECT_NEAR(runs.high, 12 + 4.968, 0.005);
  EXPECT_FALSE(runs_interval(std::vector<double>{10.0}));
}

TEST(StudentT, IsThatOfTheTables) {
  const std::pair<double, double> table[] = {
      {1, 12.706}, {2, 4.303},  {3, 3.182},  {4, 2.776},  {5, 2.571},   {7, 2.365},  {9, 2.262},
      {10, 2.228}, {20, 2.086}, {30, 2.042}, {60, 2.000}, {120, 1.980}, {1e6, 1.960}};
  for (const auto& [freedom, t] : table) EXPECT_NEAR(student_t95(freedom), t, 0.002) << freedom;
}

TEST(Compare, SaysWhatIsFaster) {
  using Verdict = RateComparison::Verdict;
  const Interval baseline = {100, 98, 102};
  EXPECT_EQ(compare({110, 107, 113}, baseline)->verdict, Verdict::faster);
  EXPECT_EQ(compare({91, 89, 93}, baseline)->verdict, Verdict::slower);
  // Intervals that overlap may still differ: ln 1.04 = 0.039 > hypot(0.020, 0.019)
  EXPECT_EQ(compare({104, 102, 106}, baseline)->verdict, Verdict::faster);
  EXPECT_EQ(compare({102, 100, 104}, baseline)->verdict, Verdict::no_difference);
  EXPECT_FALSE(compare({1, -1, 3}, baseline));
  const Interval ratio = compare({200, 196, 204}, {100, 100, 100})->ratio;
  EXPECT_NEAR(ratio.value, 2, 1e-12);
  EXPECT_NEAR(ratio.low, 1.96, 1e-12);
  EXPECT_NEAR(ratio.high, 2.04, 1e-12);
}

TEST(Compare, FindsNoDifferenceIn95Of100PairsThatHaveNone) {
  Random random(5);
  int none = 0;
  for (int i = 0; i < 500; ++i) {
    const auto a = mean_interval(autocorrelated(random, 300, 0.5, true)).value();
    const auto b = mean_interval(autocorrelated(random, 150, 0.3, true)).value();
    none += compare(a, b)->verdict == RateComparison::Verdict::no_difference ? 1 : 0;
  }
  fmt::print("no difference in {:.1f} % of equal pairs\n", none / 5.0);
  EXPECT_GE(none, 0.92 * 500);
  EXPECT_LE(none, 0.98 * 500);
}

TEST(Distribution, IsThatOfSmallNumbers) {
  std::vector<double> values;
  for (int i = 100; i >= 0; --i) values.push_back(i);
  const Distribution found = distribution_of(values).value();
  EXPECT_DOUBLE_EQ(found.p5, 5);
  EXPECT_DOUBLE_EQ(found.p25, 25);
  EXPECT_DOUBLE_EQ(found.median, 50);
  EXPECT_DOUBLE_EQ(found.p75, 75);
  EXPECT_DOUBLE_EQ(found.p95, 95);
  EXPECT_DOUBLE_EQ(found.p99, 99);
  EXPECT_NEAR(found.jitter, 1.4826 * 25, 1e-9);
  EXPECT_DOUBLE_EQ(distribution_of(std::vector<double>{1, 2})->median, 1.5);
  EXPECT_DOUBLE_EQ(distribution_of(std::vector<double>{3})->p99, 3);
  EXPECT_FALSE(distribution_of({}));
}

TEST(FigureText, HasTheDigitsThatItDeserves) {
  EXPECT_EQ(figure_text(1234.4), "1,234");
  EXPECT_EQ(figure_text(12.34), "12.3");
  EXPECT_EQ(figure_text(1e20), "1e+20");
  EXPECT_EQ(figure_text(std::numeric_limits<double>::infinity()), "inf");
}

TEST(RangeText, SaysNothingOfAnEndThatIsNotThere) {
  const auto number = [](double value) { return std::to_string(static_cast<int>(value)); };
  EXPECT_EQ(range_text({50, 36, 114}, number), "36 to 114");
  EXPECT_EQ(range_text({50, 36, std::numeric_limits<double>::infinity()}, number), "at least 36");
  EXPECT_EQ(ratio_text({1.25, 1.1, 1.4}), "1.25x (1.10 to 1.40, 95 %)");
}

TEST(BlockLength, GrowsWithTheAutocorrelation) {
  Random random(6);
  const size_t none = block_length(std::vector<double>(500, 0.0));
  EXPECT_EQ(none, 1U);
  auto centred = [&](double rho) {
    auto values = autocorrelated(random, 2000, rho, false);
    for (double& value : values) value -= 1;
    return block_length(values);
  };
  // For AR(1) the best is (6 n)^(1/3) (rho / (1 - rho^2))^(2/3): 18 for 0.5 and 61 for 0.9.
  const auto some = static_cast<double>(centred(0.5)), much = static_cast<double>(centred(0.9));
  EXPECT_NEAR(some, 18, 9);
  EXPECT_NEAR(much, 61, 30);
}

}  // namespace
}  // namespace stoker
