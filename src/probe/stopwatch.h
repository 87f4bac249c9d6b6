// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "base/progress.h"
#include "results/machine.h"

namespace stoker {

using ProbeClock = std::chrono::steady_clock;

double seconds_since(ProbeClock::time_point begin);

/// The time that one thread has for one repeat.
class Slot {
 public:
  Slot(double seconds, const Progress& progress);
  /// Also once the user wants to stop.
  bool over() const;
  /// Whether there is time for another one after `done` of them: the first is done in any case, so
  /// that something is measured however busy the machine is.
  bool more(uint64_t done) const { return done == 0 || !over(); }

 private:
  ProbeClock::time_point end_;
  const Progress& progress_;
};

struct Trial {
  unsigned threads = 1;
  unsigned repeats = 3;
  double seconds = 0.3;  // of all repeats
};

/// What a thread does in a repeat, until the slot is over or nothing is left to do: returns how
/// much it was, as the unit of the rate has it.
using Work = std::function<uint64_t(unsigned thread, unsigned repeat, const Slot& slot)>;

/// Runs `work` on all threads at once, as often as the trial says, `before_each` before every
/// repeat and outside of its time. A repeat ends with its slowest thread. A repeat in which nothing
/// was done ends the trial and does not count; where none counts, the rate has no repeats.
/// Throws what `work` throws, and Error(interrupted).
Rate time_trial(const Trial& trial, Progress& progress, const Work& work,
                const std::function<void()>& before_each = {});

/// 1, 4, 16, … and `most` itself.
std::vector<unsigned> thread_counts(unsigned most);

}  // namespace stoker
