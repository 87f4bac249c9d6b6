// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "load/loader_stats.h"

namespace stoker {

/// Sums of a stage over its threads.
class StageSums {
 public:
  /// In seconds; `threads` are those that it has at the moment.
  StageTime read(unsigned threads) const;

 private:
  friend class StageClock;
  std::atomic<int64_t> busy_{0}, computing_{0}, waiting_for_input_{0}, waiting_for_room_{0};  // ns
};

/// One for each thread of a stage: adds the time from one call to the next to one of the sums.
class StageClock {
 public:
  explicit StageClock(StageSums& sums);
  ~StageClock();
  StageClock(const StageClock&) = delete;
  StageClock& operator=(const StageClock&) = delete;

  void busy();
  void waited_for_input() { add(sums_.waiting_for_input_); }
  void waited_for_room() { add(sums_.waiting_for_room_); }
  /// Time that belongs to nobody: the thread was not wanted.
  void skip() { last_ = Clock::now(); }

 private:
  using Clock = std::chrono::steady_clock;
  void add(std::atomic<int64_t>& sum);
  int64_t thread_time() const;

  StageSums& sums_;
  int statistics_;  // of the kernel about this thread
  Clock::time_point last_ = Clock::now();
  int64_t computed_;
};

}  // namespace stoker
