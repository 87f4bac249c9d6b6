// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_bar.h"

#include <gtest/gtest.h>

#include "cli/output.h"

namespace stoker {
namespace {

TEST(ProgressBar, Line) {
  const ProgressView view{"packing", 500, 2000, 1'000'000, 4'000'000};
  EXPECT_EQ(progress_line(view, 100e3, 80, false),
            "packing  [#######.....................]   25%  500 of 2,000  100 kB/s  30 s left");
}

TEST(ProgressBar, PartsThatDoNotFitAreLeftOut) {
  const ProgressView view{"packing", 500, 2000, 1'000'000, 4'000'000};
  for (size_t width = 1; width < 100; ++width) {
    for (const bool unicode : {false, true}) {
      EXPECT_LE(display_width(progress_line(view, 100e3, width, unicode)), width);
    }
  }
  EXPECT_EQ(progress_line(view, 100e3, 30, false), "packing   25%  30 s left");
  EXPECT_EQ(progress_line(view, 100e3, 8, false), "packing");
}

TEST(ProgressBar, WithoutTotals) {
  EXPECT_EQ(progress_line({"scanning", 1234, 0, 0, 0}, 1000.0, 80, true),
            "scanning  1,234 samples  1,000/s");
  EXPECT_EQ(progress_line({"reading", 0, 0, 5000, 0}, std::nullopt, 80, true), "reading  5.00 kB");
  EXPECT_EQ(progress_line({"", 0, 0, 0, 0}, std::nullopt, 80, true), "working  0 samples");
}

TEST(ProgressBar, SamplesAlone) {
  EXPECT_EQ(progress_line({"scanning", 50, 100, 0, 0}, 1.0, 60, false),
            "scanning  [#######........]   50%  50 of 100  1/s  50 s left");
}

TEST(ProgressBar, MoreThanExpected) {
  const std::string line = progress_line({"x", 12, 10, 0, 0}, 1.0, 60, false);
  EXPECT_NE(line.find("100%"), std::string::npos) << line;
  EXPECT_NE(line.find("10 of 10"), std::string::npos) << line;
}

TEST(RateMeter, MeanOfTheLastSeconds) {
  RateMeter meter;
  EXPECT_EQ(meter.rate(), std::nullopt);
  meter.add(0, 0);
  EXPECT_EQ(meter.rate(), std::nullopt);
  for (int second = 1; second <= 20; ++second) meter.add(second, 100 * second);
  EXPECT_DOUBLE_EQ(*meter.rate(), 100);
  for (int second = 21; second <= 40; ++second) meter.add(second, 2000 + 10 * (second - 20));
  EXPECT_DOUBLE_EQ(*meter.rate(), 10);
  meter.add(41, 5);  // counts anew
  EXPECT_EQ(meter.rate(), std::nullopt);
}

TEST(ProgressBar, ThreadedEndsAtOnceAndSilently) {
  Progress progress;
  progress.begin("packing", 10, 10);
  testing::internal::CaptureStderr();
  { const ProgressBar bar(progress); }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace stoker
