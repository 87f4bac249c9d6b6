// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <istream>
#include <string>

namespace stoker {

/// Cores this process may use: by its affinity mask, cgroup quota and SLURM_CPUS_PER_TASK, not the
/// machine's.
unsigned usable_cores();

/// Cores that cgroups grant, of version 1 or 2, or 0 where they set no quota. `file_system` is
/// /sys/fs/cgroup, `own_groups` what /proc/self/cgroup says.
double cgroup_cores(const std::string& file_system, std::istream& own_groups);

/// Calls work(0) … work(count-1) on up to `threads` threads, each index once, lowest first.
/// After the first exception no new index is begun; it is rethrown when all threads have ended.
void parallel_for(size_t count, unsigned threads, const std::function<void(size_t)>& work);

/// Threads for pieces of work that go on side by side, each with a thread of its own: those of
/// pieces that are done help with the others.
class ThreadShares {
 public:
  ThreadShares(unsigned threads, size_t pieces) : threads_(threads), left_(pieces) {}

  /// How many a piece may use at the moment.
  unsigned now() const {
    const size_t side_by_side = std::clamp<size_t>(left_.load(), 1, threads_);
    return static_cast<unsigned>(threads_ / side_by_side);
  }
  /// A piece is done.
  void leave() { --left_; }

 private:
  const unsigned threads_;
  std::atomic<size_t> left_;
};

}  // namespace stoker
