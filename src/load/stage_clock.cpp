// SPDX-License-Identifier: Apache-2.0
#include "load/stage_clock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>

#include "os/node.h"

namespace stoker {

StageTime StageSums::read(unsigned threads) const {
  const auto seconds = [](int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; };
  return {threads, seconds(busy_), seconds(computing_), seconds(waiting_for_input_),
          seconds(waiting_for_room_)};
}

StageClock::StageClock(StageSums& sums)
    : sums_(sums),
      statistics_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)),
      computed_(thread_time()) {}

StageClock::~StageClock() {
  if (statistics_ >= 0) ::close(statistics_);
}

void StageClock::busy() {
  const int64_t computed = thread_time();
  sums_.computing_ += computed - computed_;
  computed_ = computed;
  add(sums_.busy_);
}

void StageClock::add(std::atomic<int64_t>& sum) {
  const Clock::time_point now = Clock::now();
  sum += std::chrono::duration_cast<std::chrono::nanoseconds>(now - last_).count();
  last_ = now;
}

/// Nanoseconds that the calling thread was on a core, or waited for one because others were.
int64_t StageClock::thread_time() const {
  char text[64] = {};
  int64_t on_core = 0;
  int64_t waited = 0;
  if (statistics_ >= 0 && ::pread(statistics_, text, sizeof(text) - 1, 0) > 0 &&
      std::sscanf(text, "%" SCNd64 " %" SCNd64, &on_core, &waited) == 2) {
    return on_core + waited;
  }
  return thread_cpu_ns();
}

}  // namespace stoker
