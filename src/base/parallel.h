// SPDX-License-Identifier: Apache-2.0
#pragma once

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

}  // namespace stoker
