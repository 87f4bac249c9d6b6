// SPDX-License-Identifier: Apache-2.0
#include "probe/stopwatch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <stdexcept>

namespace stoker {
namespace {

TEST(ThreadedStopwatch, EveryThreadInEveryRepeat) {
  Progress progress;
  std::atomic<int> calls{0}, prepared{0};
  const Rate rate = time_trial(
      {.threads = 3, .repeats = 4, .seconds = 0.04}, progress,
      [&](unsigned thread, unsigned, const Slot& slot) -> uint64_t {
        ++calls;
        while (!slot.over()) {
        }
        return thread + 1;
      },
      [&] { ++prepared; });
  EXPECT_EQ(calls, 12);
  EXPECT_EQ(prepared, 4);
  EXPECT_EQ(rate.repeats, 4U);
  EXPECT_EQ(rate.threads, 3U);
  EXPECT_EQ(rate.amount, 4U * (1 + 2 + 3));
  EXPECT_GE(rate.seconds, 0.04);
  EXPECT_LE(rate.least, rate.per_s);
  EXPECT_LE(rate.per_s, rate.most);
  EXPECT_LE(rate.most, 6 / 0.01);  // no repeat is shorter than its slot
}

TEST(ThreadedStopwatch, ARepeatWithoutWorkEndsIt) {
  Progress progress;
  const Rate rate = time_trial(
      {.threads = 1, .repeats = 3, .seconds = 0.003}, progress,
      [](unsigned, unsigned repeat, const Slot&) -> uint64_t { return repeat == 1 ? 0 : 5; });
  EXPECT_EQ(rate.repeats, 1U);
  EXPECT_EQ(rate.amount, 5U);
}

TEST(ThreadedStopwatch, FailuresOfAThreadArrive) {
  Progress progress;
  EXPECT_THROW(time_trial({.threads = 2}, progress,
                          [](unsigned thread, unsigned, const Slot&) -> uint64_t {
                            if (thread == 1) throw std::runtime_error("x");
                            return 1;
                          }),
               std::runtime_error);
}

TEST(ThreadedStopwatch, StopsWhenAsked) {
  Progress progress;
  EXPECT_THROW(time_trial({.threads = 2, .repeats = 1, .seconds = 1000}, progress,
                          [&](unsigned thread, unsigned, const Slot& slot) -> uint64_t {
                            if (thread == 1) progress.stop = true;
                            while (!slot.over()) {
                            }
                            return 1;
                          }),
               Error);
}

TEST(ThreadedStopwatch, ThreadCounts) {
  EXPECT_EQ(thread_counts(1), (std::vector<unsigned>{1}));
  EXPECT_EQ(thread_counts(2), (std::vector<unsigned>{1, 2}));
  EXPECT_EQ(thread_counts(16), (std::vector<unsigned>{1, 4, 16}));
  EXPECT_EQ(thread_counts(20), (std::vector<unsigned>{1, 4, 16, 20}));
}

}  // namespace
}  // namespace stoker
