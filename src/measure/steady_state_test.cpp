// SPDX-License-Identifier: Apache-2.0
#include "measure/steady_state.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <limits>

#include "measure/series_generator.h"

namespace stoker {
namespace {

using Kind = SteadyState::Kind;
using Cause = SteadyState::Cause;
using Shape = GeneratedSeries::Shape;

/// Not 1, with which the constants of the detector were chosen.
constexpr uint64_t kSeed = 20'261;
constexpr std::array kShapeNames = {"flat", "oscillating", "step_down", "step_up",
                                    "ramp", "cyclic",      "drift",     "late_step"};

Kind kind_of(GeneratedSeries::Truth truth) { return static_cast<Kind>(truth); }

struct Score {
  int series = 0, right = 0, changes = 0, near = 0;
};

TEST(SteadyState, FindsTheTruthOfGeneratedSeries) {
  SeriesGenerator generator(kSeed);
  std::array<Score, kShapeNames.size()> scores;
  Score all;
  int checkpoints = 0, found = 0, invented = 0;
  double worst_mean = 0;
  for (size_t i = 0; i < 1000; ++i) {
    const size_t shape = i % scores.size();
    const GeneratedSeries made = generator.make(static_cast<Shape>(shape));
    const SteadyState state = steady_state(made.steps);
    const bool right = state.kind == kind_of(made.truth);
    const double length = static_cast<double>(made.steps.size());
    for (Score* score : {&scores[shape], &all}) {
      ++score->series;
      score->right += right ? 1 : 0;
      if (!made.change) continue;
      ++score->changes;
      const double off = static_cast<double>(state.from_step) - static_cast<double>(*made.change);
      score->near += right && std::abs(off) <= 0.02 * length ? 1 : 0;
    }
    if (right && made.shape == Shape::flat) {
      // Five standard errors of n values with this autocorrelation.
      const double allowed =
          5 * made.noise * std::sqrt((1 + made.rho) / (1 - made.rho) / length) + 1e-9;
      worst_mean = std::max(worst_mean, std::abs(state.mean / made.level - 1) - allowed);
    }
    checkpoints += made.spike_period > 0 ? 1 : 0;
    for (const Periodic& periodic : state.periodic) {
      found += periodic.period == made.spike_period ? 1 : 0;
      invented += periodic.period != made.spike_period ? 1 : 0;
    }
  }
  for (size_t i = 0; i < scores.size(); ++i) {
    fmt::print("{:12} right {:3} of {:3}   change found {:3} of {:3}\n", kShapeNames[i],
               scores[i].right, scores[i].series, scores[i].near, scores[i].changes);
  }
  fmt::print("{:12} right {} of {}   change found {} of {}   checkpoints {} of {}, invented {}\n",
             "all", all.right, all.series, all.near, all.changes, found, checkpoints, invented);
  EXPECT_GE(all.right, 950);
  EXPECT_GE(all.near, 0.9 * all.changes);
  for (const Score& score : scores) EXPECT_GE(score.right, 0.9 * score.series);
  EXPECT_GE(found, 0.95 * checkpoints);
  EXPECT_LE(invented, 10);
  EXPECT_LE(worst_mean, 0.01);  // outliers that are not far enough away to be taken out
}

std::vector<double> with_noise(std::vector<double> steps, double share, uint64_t seed = 7) {
  Random random(seed);
  for (double& step : steps) step *= 1 + share * random.normal();
  return steps;
}

TEST(SteadyState, TheFirstStepCompiles) {
  for (const size_t slow : {1, 3, 20}) {
    std::vector<double> steps(1000, 0.1);
    std::fill_n(steps.begin(), slow, 12.0);
    const SteadyState state = steady_state(with_noise(steps, 0.02));
    EXPECT_EQ(state.kind, Kind::warm_up);
    EXPECT_EQ(state.from_step, slow);
    EXPECT_EQ(state.changes, std::vector<size_t>{slow});
    EXPECT_NEAR(state.mean, 0.1, 0.001);
  }
}

TEST(SteadyState, SteadyAfterANeighbourLeft) {
  std::vector<double> steps(1000, 0.1);
  std::fill_n(steps.begin() + 300, 200, 0.15);
  const SteadyState state = steady_state(with_noise(steps, 0.05));
  EXPECT_EQ(state.kind, Kind::warm_up);
  ASSERT_EQ(state.changes.size(), 2U);
  EXPECT_NEAR(static_cast<double>(state.changes[0]), 300, 3);
  EXPECT_NEAR(static_cast<double>(state.from_step), 500, 3);
}

TEST(SteadyState, CheckpointsAndEvaluationsAreNoWarmUp) {
  std::vector<double> steps(2000, 0.1);
  for (size_t i = 99; i < steps.size(); i += 100) steps[i] = 2;
  for (size_t i = 330; i < steps.size(); i += 331) steps[i] = 5;
  const SteadyState state = steady_state(with_noise(steps, 0.05));
  EXPECT_EQ(state.kind, Kind::flat);
  ASSERT_EQ(state.periodic.size(), 2U);
  EXPECT_EQ(state.periodic[0].period, 100U);
  EXPECT_EQ(state.periodic[0].first, 99U);
  EXPECT_EQ(state.periodic[0].count, 20U);
  EXPECT_NEAR(state.periodic[0].seconds, 2, 0.1);
  EXPECT_EQ(state.periodic[1].period, 331U);
  EXPECT_EQ(state.periodic[1].count, 6U);
  EXPECT_NEAR(state.mean, 0.1, 0.001);
  EXPECT_NEAR(state.mean_all, (1974 * 0.1 + 20 * 2 + 6 * 5) / 2000, 0.01);
}

TEST(SteadyState, FindsCheckpointsAmongOutliersOfTheirSize) {
  std::vector<double> steps(3000, 0.1);
  Random random(8);
  for (int i = 0; i < 90; ++i) steps[random.below(steps.size())] = random.uniform(0.5, 2);
  for (size_t i = 249; i < steps.size(); i += 250) steps[i] = 1;
  const SteadyState state = steady_state(with_noise(steps, 0.05));
  ASSERT_EQ(state.periodic.size(), 1U);
  EXPECT_EQ(state.periodic[0].period, 250U);
  EXPECT_EQ(state.periodic[0].count, 12U);
  EXPECT_NEAR(state.mean, 0.1, 0.001);
}

TEST(SteadyState, KnownBoundariesNeedNotBeRegular) {
  std::vector<double> steps(300, 0.1);
  const std::vector<size_t> epochs = {0, 90, 91, 92, 93, 250};
  for (const size_t i : epochs) steps[i] = 1;
  const SteadyState state = steady_state(with_noise(steps, 0.02), epochs);
  EXPECT_EQ(state.kind, Kind::warm_up);
  EXPECT_EQ(state.from_step, 1U);
  EXPECT_EQ(state.outliers, (std::vector<size_t>{90, 91, 92, 93, 250}));
}

TEST(SteadyState, NamesTheCauseWhereNothingIsSteady) {
  const auto cause = [](auto&& step) {
    std::vector<double> steps;
    for (size_t i = 0; i < 1000; ++i) steps.push_back(step(static_cast<double>(i) / 1000));
    const SteadyState state = steady_state(with_noise(steps, 0.05));
    EXPECT_EQ(state.kind, Kind::none);
    EXPECT_EQ(state.from_step, 0U);
    return state.cause;
  };
  EXPECT_EQ(cause([](double t) { return 1 + 0.5 * t; }), Cause::drift_slower);
  EXPECT_EQ(cause([](double t) { return 1.5 - 0.5 * t; }), Cause::drift_faster);
  EXPECT_EQ(cause([](double t) { return t < 0.92 ? 1 : 1.4; }), Cause::late_slower);
  EXPECT_EQ(cause([](double t) { return t < 0.92 ? 1.4 : 1; }), Cause::late_faster);
  EXPECT_EQ(cause([](double t) { return std::fmod(t, 0.3) < 0.15 ? 1 : 1.4; }), Cause::cyclic);
}

TEST(SteadyState, ShortRunsHaveAnAnswerToo) {
  std::vector<double> steps(40, 1.0);
  EXPECT_EQ(steady_state(with_noise(steps, 0.05)).kind, Kind::flat);
  std::fill_n(steps.begin(), 10, 2.0);
  const SteadyState warm = steady_state(with_noise(steps, 0.05));
  EXPECT_EQ(warm.kind, Kind::warm_up);
  EXPECT_EQ(warm.from_step, 10U);
  EXPECT_NEAR(warm.mean, 1, 0.05);
  std::fill_n(steps.begin(), 30, 2.0);
  const SteadyState late = steady_state(with_noise(steps, 0.05));
  EXPECT_EQ(late.kind, Kind::none);
  EXPECT_EQ(late.cause, Cause::too_short);
  int flat = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<double> even(20 + seed % 40, 1.0);
    flat += steady_state(with_noise(even, 0.1, seed)).kind == Kind::flat ? 1 : 0;
  }
  EXPECT_GE(flat, 190);
}

TEST(SteadyState, StandsAnyInput) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(steady_state({}).kind, Kind::none);
  EXPECT_EQ(steady_state(std::vector<double>{1.0}).kind, Kind::none);
  EXPECT_EQ(steady_state(std::vector<double>{1.0}).mean, 1);
  for (const double value : {0.0, 1e-9, 0.25, 1e9, 1e99, 5e-324}) {
    for (const size_t size : {20, 59, 60, 61, 1000}) {
      const SteadyState state = steady_state(std::vector<double>(size, value));
      EXPECT_EQ(state.kind, Kind::flat) << value << ", " << size;
      EXPECT_NEAR(state.mean, value, 1e-9 * value);
      EXPECT_TRUE(state.changes.empty());
    }
  }
  std::vector<double> jumps = with_noise(std::vector<double>(500, 0.2), 0.03);
  for (const auto& [at, value] :
       {std::pair{3, nan}, {4, -1.0}, {100, infinity}, {101, -infinity}, {499, nan}}) {
    jumps[static_cast<size_t>(at)] = value;
  }
  const std::vector<size_t> boundaries = {3, 4, 600};
  const SteadyState state = steady_state(jumps, boundaries);
  EXPECT_EQ(state.dropped, 5U);
  EXPECT_EQ(state.kind, Kind::flat);
  EXPECT_NEAR(state.mean, 0.2, 0.002);
  EXPECT_EQ(steady_state(std::vector<double>(100, nan)).dropped, 100U);
  for (size_t size = 0; size < 300; ++size) {  // sanitizers look at these
    Random random(size);
    std::vector<double> wild(size);
    for (double& step : wild) step = std::exp(random.uniform(-30, 30));
    const SteadyState any = steady_state(wild);
    EXPECT_LE(any.from_step, size);
  }
}

TEST(SteadyState, ManyStepsTakeNoTime) {
  std::vector<double> steps(100'000, 0.1);
  for (size_t i = 0; i < 300; ++i) steps[i] = 0.3;
  for (size_t i = 999; i < steps.size(); i += 1000) steps[i] = 1;
  steps = with_noise(steps, 0.1);
  const auto begin = std::chrono::steady_clock::now();
  const SteadyState state = steady_state(steps);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print("100,000 steps: {:.3f} s\n", seconds);
  EXPECT_EQ(state.kind, Kind::warm_up);
  EXPECT_NEAR(static_cast<double>(state.from_step), 300, 20);
  ASSERT_EQ(state.periodic.size(), 1U);
  EXPECT_EQ(state.periodic[0].period, 1000U);
  // A tenth of a second on a machine of 2020; quadratic time would be minutes.
  EXPECT_LT(seconds, 10);
}

}  // namespace
}  // namespace stoker
