// SPDX-License-Identifier: Apache-2.0
#include "measure/meter.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <list>

#include "base/error.h"
#include "measure/run_summary.h"
#include "measure/time.h"
#include "os/scratch_directory.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

class MeterTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"STOKER_RUN", "RANK", "WORLD_SIZE"}) ::unsetenv(name);
  }
  void TearDown() override { SetUp(); }

  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }

  ScratchDirectory directory_;
};

void spin(double seconds) {
  const int64_t end = monotonic_ns() + static_cast<int64_t>(seconds * 1e9);
  while (monotonic_ns() < end) {
  }
}

TEST_F(MeterTest, StepsAndWhatLiesBetween) {
  const int64_t begin = monotonic_ns();
  {
    Meter meter({.run = path("r"), .command = {"train", "--fast"}});
    for (int i = 0; i < 100; ++i) {
      spin(300e-6);
      const auto step = meter.step(16);
      spin(100e-6);
    }
  }
  const double took = static_cast<double>(monotonic_ns() - begin) * 1e-9;
  const stoker::Run run = read_run(path("r"));
  EXPECT_EQ(run.info.command, (std::vector<std::string>{"train", "--fast"}));
  ASSERT_EQ(run.steps.size(), 1U);
  EXPECT_TRUE(run.steps[0].ended);
  EXPECT_EQ(run.steps[0].pid, ::getpid());
  ASSERT_EQ(run.steps[0].rows.size(), 100U);
  double sum = 0;
  for (const StepSeries::Row& row : run.steps[0].rows) {
    EXPECT_GE(row.wait_s, 300e-6);
    EXPECT_GE(row.step_s, 100e-6);
    sum += row.duration_s();
  }
  EXPECT_LE(sum, took);
  const RunSummary summary = summarise(run);
  EXPECT_EQ(summary.source, "Meter.step");
  EXPECT_EQ(summary.steps, 100U);
  EXPECT_EQ(summary.samples, 1600U);
  ASSERT_TRUE(summary.samples_per_s);
  EXPECT_LE(summary.samples_per_s->value, 16 / 400e-6);
  EXPECT_TRUE(summary.wait_share);
}

TEST_F(MeterTest, WatchesWhatAForTakes) {
  const std::list<std::vector<int>> batches = {{1, 2, 3}, {4, 5, 6}, {7}};
  std::vector<int> seen;
  {
    Meter meter({.run = path("r")});
    auto watched = meter.watch(batches, "training");
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const std::vector<int>& batch : watched)
        seen.insert(seen.end(), batch.begin(), batch.end());
    }
    for (const std::vector<int>& batch : watched) {
      if (batch[0] == 4) break;  // this one counts, too
    }
  }
  EXPECT_EQ(seen, (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7}));
  const stoker::Run run = read_run(path("r"));
  ASSERT_EQ(run.steps.size(), 1U);
  const auto ends = std::ranges::count_if(run.steps[0].rows, [](const auto& row) {
    return row.kind == StepSeries::Kind::end_of_epoch;
  });
  EXPECT_EQ(ends, 2);
  const RunSummary summary = summarise(run);
  EXPECT_EQ(summary.source, "training");
  EXPECT_EQ(summary.steps, 3U + 3 + 2);
  EXPECT_EQ(summary.samples, 7U + 7 + 6);
  EXPECT_EQ(summary.epochs, 3U);
}

/// Makes a batch each time it is asked for one, as a generator's iterator may.
struct Lazy {
  struct Iterator {
    int& made;
    int at;
    int operator*() const {
      ++made;
      return at * 10;
    }
    Iterator& operator++() {
      ++at;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at != other.at; }
  };
  Iterator begin() { return {made, 0}; }
  Iterator end() { return {made, 5}; }

  int made = 0;
};

TEST_F(MeterTest, AsksALazyBatchOnceAndCountsAsItIsTold) {
  Lazy batches;
  int sum = 0;
  {
    Meter meter({.run = path("r")});
    for (const int batch : meter.watch(batches, "lazy", [](int) { return 4; })) sum += batch;
  }
  EXPECT_EQ(sum, 100);
  EXPECT_EQ(batches.made, 5);
  EXPECT_EQ(summarise(read_run(path("r"))).samples, 20U);
}

TEST_F(MeterTest, AnExceptionPassesAndItsStepCountsOnce) {
  const std::vector<int> batches = {1, 2, 3};
  {
    Meter meter({.run = path("r")});
    EXPECT_THROW(
        {
          for (const int batch : meter.watch(batches, "mine")) {
            if (batch == 2) throw std::runtime_error("no");
          }
        },
        std::runtime_error);
  }
  EXPECT_EQ(summarise(read_run(path("r"))).steps, 2U);
}

TEST_F(MeterTest, JoinsTheRunAroundItAndTheRunOfItsRanks) {
  std::string note;
  begin_run(path("around"), {"sh"}, note);
  ::setenv("STOKER_RUN", path("around").c_str(), 1);
  Meter within({.run = path("not-made")});
  EXPECT_EQ(within.run(), path("around"));
  EXPECT_FALSE(fs::exists(path("not-made")));
  ::unsetenv("STOKER_RUN");

  const Meter first({.run = path("r")});
  EXPECT_THROW(Meter({.run = path("r")}), Error);
  for (const char* rank : {"0", "1"}) {
    ::setenv("WORLD_SIZE", "2", 1);
    ::setenv("RANK", rank, 1);
    Meter meter({.run = path("ranks")});
    const auto step = meter.step(1);
  }
  const stoker::Run run = read_run(path("ranks"));
  ASSERT_EQ(run.steps.size(), 2U);  // of one process here, so numbered
  EXPECT_EQ(run.steps[0].rank + run.steps[1].rank, 1U);
  EXPECT_EQ(run.steps[0].world, 2U);
}

TEST_F(MeterTest, ADirectoryThatVanishesDisturbsNothing) {
  Meter meter({.run = path("r")});
  fs::remove_all(path("r"));
  for (int i = 0; i < 3; ++i) {
    const auto step = meter.step(1);
  }
  meter.flush();
  EXPECT_NE(meter.failure(), "");
  const auto step = meter.step(1);
}

TEST_F(MeterTest, WhatWasWrittenSurvivesAKillAndAForkHasItsOwnFile) {
  Meter meter({.run = path("r")});
  { const auto step = meter.step(8); }
  const pid_t child = ::fork();
  if (child == 0) {
    for (int i = 0; i < 4; ++i) {
      const auto step = meter.step(2);
    }
    meter.flush();
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  meter.flush();
  const stoker::Run run = read_run(path("r"));
  ASSERT_EQ(run.steps.size(), 2U);
  for (const StepSeries& series : run.steps) {
    EXPECT_FALSE(series.ended);
    EXPECT_EQ(series.rows.size(), series.pid == child ? 4U : 1U);
    EXPECT_EQ(series.rows[0].samples, series.pid == child ? 2U : 8U);
  }
}

}  // namespace
}  // namespace stoker
