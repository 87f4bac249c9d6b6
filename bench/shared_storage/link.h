// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>

namespace stoker {

/// The wire to a shared storage. Requests wait for their answers side by side, but their bytes come
/// one behind the other: all of them together are never faster than the wire. Thread-safe.
class SharedLink {
 public:
  using Clock = std::chrono::steady_clock;

  /// 0: as fast as it gets.
  explicit SharedLink(uint64_t bytes_per_s) : bytes_per_s_(bytes_per_s) {}

  /// When these bytes, which the storage has at hand from `ready` on, are all here. Time during
  /// which nobody wanted anything is lost.
  Clock::time_point arrival(Clock::time_point ready, uint64_t bytes) {
    if (bytes_per_s_ == 0) return ready;
    const std::chrono::duration<double> takes(static_cast<double>(bytes) /
                                              static_cast<double>(bytes_per_s_));
    const std::lock_guard lock(mutex_);
    free_ = std::max(free_, ready) + std::chrono::duration_cast<Clock::duration>(takes);
    return free_;
  }

 private:
  const uint64_t bytes_per_s_;
  std::mutex mutex_;
  Clock::time_point free_ = Clock::time_point::min();
};

}  // namespace stoker
