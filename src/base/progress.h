// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "base/error.h"

namespace stoker {

/// How far a long piece of work has come, and whether it should stop. The work writes the
/// counters from many threads; whoever shows them reads at its own pace. Totals of 0 are unknown.
struct Progress {
  std::atomic<const char*> stage{""};
  std::atomic<uint64_t> samples{0}, total_samples{0};
  std::atomic<uint64_t> bytes{0}, total_bytes{0};
  std::atomic<bool> stop{false};
  /// Of the work that this is a part of: stops this one too.
  const Progress* whole = nullptr;

  /// Throws Error(interrupted) once `stop` is set; called between two samples.
  void check_stop() const {
    if (whole != nullptr) whole->check_stop();
    if (stop.load(std::memory_order_relaxed)) throw Error(ErrorKind::interrupted, "interrupted");
  }

  void begin(const char* what, uint64_t samples_expected, uint64_t bytes_expected) {
    samples = 0;
    bytes = 0;
    total_samples = samples_expected;
    total_bytes = bytes_expected;
    stage = what;
  }
};

}  // namespace stoker
