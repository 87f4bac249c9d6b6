// SPDX-License-Identifier: Apache-2.0
#include "report/series.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(Thin, KeepsWhatIsFew) {
  const std::vector<SeriesPoint> points = thin({{1, 10, 1}, {2, 20, 5}}, 500);
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[1].x, 2);
  EXPECT_EQ(points[1].low, 20);
  EXPECT_EQ(points[1].mean, 20);
  EXPECT_EQ(points[1].high, 20);
  EXPECT_TRUE(thin({}, 500).empty());
}

TEST(Thin, KeepsExtremesAndWeighsTheMean) {
  // Ten steps a second for nine tenths of a second, then one that takes nine seconds.
  std::vector<Sampled> samples(9, {0, 10, 0.1});
  samples.push_back({9, 1.0 / 9, 9});
  const std::vector<SeriesPoint> points = thin(samples, 1);
  ASSERT_EQ(points.size(), 1U);
  EXPECT_DOUBLE_EQ(points[0].mean, 10 / 9.9);  // ten steps in 9.9 s
  EXPECT_EQ(points[0].low, 1.0 / 9);
  EXPECT_EQ(points[0].high, 10);
  EXPECT_EQ(points[0].x, 4.5);
}

TEST(Thin, TakesEverySampleOnce) {
  for (const size_t count : {499, 500, 501, 999, 1000, 1001, 100'003}) {
    std::vector<Sampled> samples;
    for (size_t i = 0; i < count; ++i) samples.push_back({double(i), double(i), 1});
    const std::vector<SeriesPoint> points = thin(samples, 500);
    ASSERT_EQ(points.size(), std::min<size_t>(count, 500));
    double next = 0;
    for (const SeriesPoint& point : points) {
      EXPECT_EQ(point.low, next);
      next = point.high + 1;
    }
    EXPECT_EQ(next, static_cast<double>(count));
  }
}

TEST(Uses, AreDifferencesBetweenLooks) {
  stoker::Run run;
  run.resources.resize(4);
  run.resources[1].time_s = 0.5;
  run.resources[1].cpu_s = 1;
  run.resources[2] = run.resources[1];  // the clock stood still
  run.resources[3].time_s = 1.5;
  run.resources[3].cpu_s = 0.9;  // a process ended between two looks
  const std::vector<ReportedUse> uses = uses_of(run);
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses[0].cores, 2);
  EXPECT_EQ(uses[1].cores, 0);
}

}  // namespace
}  // namespace stoker
