// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace stoker {

/// Cores this process may use (its affinity mask and cgroup quota, not the machine's).
unsigned usable_cores();

/// Calls work(0) … work(count-1) on up to `threads` threads, each index once, lowest first.
/// After the first exception no new index is begun; it is rethrown when all threads have ended.
void parallel_for(size_t count, unsigned threads, const std::function<void(size_t)>& work);

}  // namespace stoker
