// SPDX-License-Identifier: Apache-2.0
#include "load/tuning.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

const TuningLimits kLimits = {
    .most_fetch = 64, .most_decode = 4, .least_ahead = 3, .most_ahead = 8, .cores = 4};

/// What a stage with so many threads did in one second, by shares.
StageTime stage(unsigned threads, double busy, double computing, double input, double room) {
  return {threads, busy * threads, computing * threads, input * threads, room * threads};
}

TEST(Tuning, MoreThreadsReadFromASlowDisk) {
  Tuning now = {4, 4, 3};
  for (const unsigned wanted : {8U, 16U, 32U, 64U, 64U}) {
    now = tuned(now, stage(now.fetch, 1, 0.1, 0, 0), stage(4, 0.1, 0.1, 0.9, 0), 0.8, 1, kLimits);
    EXPECT_EQ(now.fetch, wanted);
    EXPECT_EQ(now.decode, 4U);
  }
}

TEST(Tuning, ThreadsThatComputeAreNoMoreThanCores) {
  Tuning now = {3, 0, 3};
  for (int i = 0; i < 4; ++i) {
    now = tuned(now, stage(now.fetch, 1, 1, 0, 0), {}, 0.8, 1, kLimits);
  }
  EXPECT_EQ(now, (Tuning{4, 0, 3}));
}

TEST(Tuning, DecodersComeBackWhenTheyAreWanted) {
  Tuning now = {2, 1, 3};
  for (int i = 0; i < 5; ++i) {
    now = tuned(now, stage(2, 0.1, 0.1, 0, 0), stage(now.decode, 1, 1, 0, 0), 0.5, 1, kLimits);
  }
  EXPECT_EQ(now, (Tuning{2, 4, 3}));
}

TEST(Tuning, NobodyIsKeptForNothing) {
  Tuning now = {8, 4, 3};
  for (int i = 0; i < 20; ++i) {
    now = tuned(now, stage(now.fetch, 0.01, 0.01, 0, 0.99), stage(now.decode, 0.1, 0.1, 0.9, 0), 0,
                1, kLimits);
  }
  EXPECT_EQ(now, (Tuning{1, 1, 3}));
}

TEST(Tuning, DepthGrowsWhereSpeedChanges) {
  Tuning now = {2, 4, 3};
  for (int i = 0; i < 10; ++i) {
    now = tuned(now, stage(2, 0.3, 0.3, 0, 0.7), stage(4, 0.6, 0.6, 0.1, 0), 0.3, 1, kLimits);
  }
  EXPECT_EQ(now.ahead, 8U);
}

TEST(Tuning, WhatFitsIsLeftAlone) {
  const Tuning now = {2, 4, 3};
  EXPECT_EQ(tuned(now, stage(2, 0.5, 0.5, 0, 0.5), stage(4, 0.9, 0.9, 0.1, 0), 0.001, 1, kLimits),
            now);
}

LoaderStats after_ten_seconds(double waited, StageTime fetch, StageTime decode) {
  LoaderStats stats;
  stats.fetch = fetch;
  stats.decode = decode;
  stats.pictures = decode.threads > 0;
  stats.seconds = stats.seconds_behind_first = 10;
  stats.waited = stats.waited_behind_first = waited;
  stats.samples = stats.samples_behind_first = 10'000;
  stats.bytes = 1'000'000'000;
  return stats;
}

TEST(Verdict, NamesWhatLimitsAndHowManyCoresAreMissing) {
  // Two cores make 500 samples/s each; the step computes for 3 of 10 s: it could take 3,333.
  const LoaderStats decode = after_ten_seconds(7, {2, 1, 1, 0, 0}, {2, 20, 20, 0, 0});
  EXPECT_EQ(limit_of(decode), "decode");
  EXPECT_EQ(verdict_of(decode, 2),
            "decode limits: 2.0 of 2 cores busy, 500 samples/s each; 5 more would feed this step, "
            "which takes 3,333 samples/s");
  const LoaderStats step = after_ten_seconds(0.05, {2, 1, 1, 0, 19}, {2, 9, 9, 11, 0});
  EXPECT_EQ(verdict_of(step, 4),
            "the step limits: its next batch was ready 99.5 % of the time; data needs 1.0 of 4 "
            "cores");
  const LoaderStats disk = after_ten_seconds(9, {8, 80, 2, 0, 0}, {2, 2, 2, 18, 0});
  EXPECT_TRUE(verdict_of(disk, 2).starts_with("fetch limits: the storage gave 100 MB/s to 8"));
  const LoaderStats alone = after_ten_seconds(9.99, {2, 1, 1, 0, 0}, {2, 20, 20, 0, 0});
  EXPECT_TRUE(verdict_of(alone, 2).ends_with("500 samples/s each; more cores help"));
  EXPECT_EQ(verdict_of({}, 2), "nothing was loaded yet");
}

TEST(Verdict, BatchesThatWereReadyWithTheFirstMakeNoStep) {
  LoaderStats stats = after_ten_seconds(9.9999, {2, 20, 20, 0, 0}, {});
  stats.seconds_behind_first = 0.0001;
  for (const double waited : {0.0, 0.00005}) {
    stats.waited_behind_first = waited;
    EXPECT_EQ(limit_of(stats), "fetch");
    EXPECT_TRUE(verdict_of(stats, 2).ends_with("100 MB/s; more cores help"));
  }
}

}  // namespace
}  // namespace stoker
