// SPDX-License-Identifier: Apache-2.0
#include "measure/scaling.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "measure/random.h"

namespace stoker {
namespace {

using enum ScalingModel;
using Points = std::vector<ScalingPoint>;

constexpr double kCounts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

double truth(ScalingModel model, double gamma, double alpha, double beta, double n) {
  if (model == gustafson) return gamma * (n - alpha * (n - 1));
  return gamma * n / (1 + alpha * (n - 1) + beta * n * (n - 1));
}

Points measured(Random& random, const ScalingFit& of, int repeats, double noise) {
  Points points;
  for (const double n : kCounts) {
    if (n > of.most_units) break;
    for (int i = 0; i < repeats; ++i) {
      const double rate = truth(of.model, of.gamma, of.alpha, of.beta, n);
      points.push_back({n, rate * (1 + noise * random.normal())});
    }
  }
  return points;
}

bool within(double found, double truth, double share) {
  return std::abs(found / truth - 1) <= share;
}

/// A curve of the model, measured as far as `most`; that of usl peaks at a quarter of it.
ScalingFit some_curve(Random& random, ScalingModel model, double most) {
  ScalingFit fit;
  fit.model = model;
  fit.gamma = random.uniform(10, 1000);
  fit.alpha = std::exp(random.uniform(std::log(0.03), std::log(0.2)));
  const double peak = most / 4 * random.uniform(0.7, 1.3);
  fit.beta = model == usl ? (1 - fit.alpha) / (peak * peak) : 0;
  fit.most_units = most;
  return fit;
}

TEST(Scaling, WhatOnlyGetsSlowerHasNoPartInParallel) {
  // alpha can be no more than 1: then N / rate = N / gamma, and 1 / gamma the mean of 1 / rate.
  const std::vector<ScalingPoint> points = {{1, 100}, {2, 80}, {4, 60}};
  const auto amdahl = fit_scaling(ScalingModel::amdahl, points);
  ASSERT_TRUE(amdahl);
  EXPECT_EQ(amdahl->alpha, 1);
  EXPECT_NEAR(amdahl->gamma, 3 / (1 / 100. + 1 / 80. + 1 / 60.), 1e-9);
  const auto gustafson = fit_scaling(ScalingModel::gustafson, points);
  ASSERT_TRUE(gustafson);
  EXPECT_EQ(gustafson->alpha, 1);
  EXPECT_NEAR(gustafson->gamma, 80, 1e-9);
}

TEST(FitScaling, FindsTheParametersOfNoisyCurves) {
  struct Claim {
    ScalingModel model;
    double most;
    int repeats;
    double least_right;  // share of 200 curves
  };
  // What 3 % of noise allows: with fewer repeats or smaller counts no method finds alpha to 5 %.
  for (const Claim& claim : {Claim{amdahl, 16, 10, 0.9},
                             {amdahl, 64, 3, 0.9},
                             {usl, 64, 10, 0.85},
                             {usl, 64, 20, 0.9}}) {
    Random random(20'263);
    int right = 0;
    for (int i = 0; i < 200; ++i) {
      const ScalingFit curve = some_curve(random, claim.model, claim.most);
      const auto fit =
          fit_scaling(claim.model, measured(random, curve, claim.repeats, 0.03)).value();
      right += within(fit.gamma, curve.gamma, 0.05) && within(fit.alpha, curve.alpha, 0.05) &&
                       (curve.beta == 0 || within(fit.beta, curve.beta, 0.05))
                   ? 1
                   : 0;
    }
    fmt::print("{}, 1 to {} units, {} repeats: all parameters within 5 % in {:.1f} % of curves\n",
               claim.model == usl ? "usl" : "amdahl", claim.most, claim.repeats, right / 2.0);
    EXPECT_GE(right, 200 * claim.least_right);
  }
}

TEST(FitScaling, GustafsonsSlope) {
  Random random(20'264);
  for (int i = 0; i < 50; ++i) {
    const ScalingFit curve = some_curve(random, gustafson, 64);
    const auto fit = fit_scaling(gustafson, measured(random, curve, 5, 0.03)).value();
    EXPECT_TRUE(within(fit.gamma, curve.gamma, 0.05));
    EXPECT_TRUE(within(1 - fit.alpha, 1 - curve.alpha, 0.05));
  }
}

TEST(FitScaling, IsExactWithoutNoise) {
  Random random(1);
  for (const ScalingModel model : {amdahl, gustafson, usl}) {
    const ScalingFit curve = some_curve(random, model, 64);
    const auto fit = fit_scaling(model, measured(random, curve, 1, 0)).value();
    EXPECT_NEAR(fit.gamma, curve.gamma, 1e-6 * curve.gamma);
    EXPECT_NEAR(fit.alpha, curve.alpha, 1e-6);
    EXPECT_NEAR(fit.beta, curve.beta, 1e-8);
    EXPECT_NEAR(fit.error, 0, 1e-6);
    EXPECT_EQ(best_scaling(measured(random, curve, 1, 0))->model, model);
  }
}

TEST(FitScaling, StaysWithinWhatMakesSense) {
  // Better than ideal: a cache that fits at last. No share is below zero.
  const auto beyond = fit_scaling(usl, Points{{1, 10}, {2, 21}, {4, 44}, {8, 90}}).value();
  EXPECT_EQ(beyond.alpha, 0);
  EXPECT_EQ(beyond.beta, 0);
  const auto worse = fit_scaling(amdahl, Points{{1, 10}, {2, 9}, {4, 8}}).value();
  EXPECT_EQ(worse.alpha, 1);
  EXPECT_EQ(fit_scaling(gustafson, Points{{1, 10}, {2, 9}, {4, 8}})->alpha, 1);
  EXPECT_FALSE(fit_scaling(amdahl, Points{{4, 10}, {4, 11}}));
  EXPECT_FALSE(fit_scaling(usl, Points{{1, 10}, {4, 30}}));
  EXPECT_FALSE(fit_scaling(amdahl, {}));
  EXPECT_FALSE(best_scaling(Points{{1, 10}, {2, 19}}));
  const double nan = std::nan("");
  const auto fit =
      fit_scaling(amdahl, Points{{1, 10}, {2, nan}, {0, 5}, {nan, 5}, {3, -1}, {2, 20}});
  EXPECT_NEAR(fit.value().gamma, 10, 1e-9);
}

TEST(ScalingIntervals, HoldTheTruth) {
  Random random(20'265);
  int alpha = 0, beta = 0;
  for (int i = 0; i < 200; ++i) {
    const ScalingFit curve = some_curve(random, usl, 16);
    const Points points = measured(random, curve, 3, 0.03);
    const ScalingIntervals found = scaling_intervals(fit_scaling(usl, points).value(), points);
    alpha += found.alpha.low <= curve.alpha && curve.alpha <= found.alpha.high ? 1 : 0;
    beta += found.beta.low <= curve.beta && curve.beta <= found.beta.high ? 1 : 0;
  }
  fmt::print("intervals hold alpha in {:.1f} %, beta in {:.1f} %\n", alpha / 2.0, beta / 2.0);
  EXPECT_GE(alpha, 180);
  EXPECT_GE(beta, 180);
  const Points points = {{1, 10}, {2, 19}, {4, 33}, {8, 55}};
  const auto fit = best_scaling(points).value();
  EXPECT_EQ(scaling_intervals(fit, points).alpha.high, scaling_intervals(fit, points).alpha.high);
}

TEST(Speedups, AreBesideOneUnit) {
  const auto rows = speedups(Points{{4, 30}, {1, 9}, {1, 11}, {2, 18}});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_DOUBLE_EQ(rows[0].rate, 10);
  EXPECT_DOUBLE_EQ(rows[1].speedup, 1.8);
  EXPECT_DOUBLE_EQ(rows[1].ideal, 0.9);
  EXPECT_DOUBLE_EQ(rows[2].speedup, 3);
  EXPECT_DOUBLE_EQ(rows[2].ideal, 0.75);
  // Nobody measured one: that of two, halved.
  EXPECT_DOUBLE_EQ(speedups(Points{{2, 20}, {4, 30}})[1].speedup, 3);
}

TEST(Prediction, EndsAtFourTimesWhatWasMeasured) {
  ScalingFit fit;
  fit.gamma = 10;
  fit.alpha = 0.25;
  fit.most_units = 4;
  EXPECT_NEAR(predicted_rate(fit, 5).value(), 25, 1e-12);  // 50 / (1 + 0.25 * 4)
  EXPECT_NEAR(predicted_rate(fit, 16).value(), 160 / 4.75, 1e-12);
  EXPECT_FALSE(predicted_rate(fit, 16.5));
  EXPECT_FALSE(predicted_rate(fit, 0.5));
  EXPECT_FALSE(predicted_rate(fit, std::nan("")));
}

TEST(Prediction, PeakAndWorth) {
  ScalingFit fit;
  fit.model = usl;
  fit.gamma = 1;
  fit.alpha = 0.04;
  fit.beta = 0.0015;
  fit.most_units = 8;
  EXPECT_NEAR(peak_units(fit).value(), 25.298, 0.001);  // sqrt(0.96 / 0.0015)
  fit.beta = 0;
  EXPECT_FALSE(peak_units(fit));
  // Amdahl, alpha 0.25: 1, 1.6, 2, 2.29: the third adds 0.4
  fit.alpha = 0.25;
  EXPECT_EQ(worthwhile_units(fit), 2U);
  EXPECT_EQ(worthwhile_units(fit, 0.35), 3U);
  fit.alpha = 0;
  EXPECT_FALSE(worthwhile_units(fit));
}

Points exact(double alpha, double beta, std::initializer_list<double> counts) {
  Points points;
  for (const double n : counts) points.push_back({n, truth(usl, 100, alpha, beta, n)});
  return points;
}

TEST(Advice, SaysHowManyToAskFor) {
  // X = 1, 1.97, 2.89, 3.72, 4.44, 5.04, 5.52, 5.90: the seventh adds 0.485
  EXPECT_EQ(
      scaling_advice(exact(0, 0.00636, {1, 2, 4, 6, 8}), "core"),
      "8 cores: 5.9x (74 % of ideal). Beyond 6 each further core brings under 50 %. Ask for 6.");
  // Amdahl: the ninth adds 0.503, the tenth 0.468
  EXPECT_EQ(scaling_advice(exact(0.05, 0, {1, 2, 4}), "GPU"),
            "4 GPUs: 3.5x (87 % of ideal). Up to 9 each further GPU should bring 50 % or more. "
            "Measure 9.");
  EXPECT_EQ(
      scaling_advice(exact(0, 0, {1, 2, 4}), "node"),
      "4 nodes: 4.0x (100 % of ideal). Each further node brings 50 % or more, as far as can be "
      "seen from 4. Ask for 4, or measure more.");
  EXPECT_EQ(
      scaling_advice(Points{{1, 10}}, "core"),
      "1 core: 1.0x (100 % of ideal). Measure three numbers of cores or more to know where it "
      "ends.");
  EXPECT_EQ(scaling_advice({}, "core"), "No core was measured.");
}

}  // namespace
}  // namespace stoker
