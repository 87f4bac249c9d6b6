// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace stoker {
namespace {

/// Cores granted by a cgroup's CPU quota, or 0 where there is none.
double cgroup_cores() {
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (v2 >> quota >> period && quota != "max" && period > 0) return std::stod(quota) / period;
  std::ifstream v1_quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream v1_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double limit = 0;
  if (v1_quota >> limit && v1_period >> period && limit > 0 && period > 0) return limit / period;
  return 0;
}

}  // namespace

unsigned usable_cores() {
  cpu_set_t set;
  unsigned cores = std::thread::hardware_concurrency();
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cores = static_cast<unsigned>(CPU_COUNT(&set));
  const double quota = cgroup_cores();
  if (quota > 0) cores = std::min(cores, static_cast<unsigned>(std::ceil(quota)));
  return std::max(1U, cores);
}

void parallel_for(size_t count, unsigned threads, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  {
    std::vector<std::jthread> workers;
    const size_t wanted = std::min<size_t>(std::max(1U, threads), count);
    try {
      for (size_t i = 1; i < wanted; ++i) workers.emplace_back(run);
    } catch (const std::system_error&) {  // no more to be had: fewer do the work
    }
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace stoker
