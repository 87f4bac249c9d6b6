// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace stoker {
namespace {

/// Cores that a directory of the cgroup file system grants, or 0 where it has no quota.
double granted_cores(const std::string& directory) {
  std::ifstream v2(directory + "/cpu.max");
  std::string quota;
  double period = 0;
  if (v2 >> quota >> period && quota != "max" && period > 0) return std::stod(quota) / period;
  std::ifstream v1_quota(directory + "/cpu.cfs_quota_us");
  std::ifstream v1_period(directory + "/cpu.cfs_period_us");
  double limit = 0;
  if (v1_quota >> limit && v1_period >> period && limit > 0 && period > 0) return limit / period;
  return 0;
}

}  // namespace

/// A group may use no more than any group it lies in.
double cgroup_cores(const std::string& file_system, std::istream& own_groups) {
  double cores = 0;
  std::string line;
  while (std::getline(own_groups, line)) {
    // "0::/path" in version 2, "4:cpu,cpuacct:/path" in version 1.
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool v2 = controllers == ",,";
    if (!v2 && controllers.find(",cpu,") == std::string::npos) continue;
    std::string path = line.substr(second + 1);
    for (;;) {
      if (path == "/") path.clear();
      const double here = granted_cores(file_system + (v2 ? "" : "/cpu") + path);
      if (here > 0) cores = cores == 0 ? here : std::min(cores, here);
      if (path.empty()) break;
      path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
  }
  return cores;
}

namespace {

/// What Slurm granted each task, where it does not bind tasks to cores by itself; 0: nothing said.
unsigned slurm_cores() {
  const char* text = std::getenv("SLURM_CPUS_PER_TASK");
  return text == nullptr ? 0 : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

}  // namespace

unsigned usable_cores() {
  cpu_set_t set;
  unsigned cores = std::thread::hardware_concurrency();
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cores = static_cast<unsigned>(CPU_COUNT(&set));
  std::ifstream own_groups("/proc/self/cgroup");
  const double quota = cgroup_cores("/sys/fs/cgroup", own_groups);
  if (const unsigned granted = slurm_cores(); granted > 0) cores = std::min(cores, granted);
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
