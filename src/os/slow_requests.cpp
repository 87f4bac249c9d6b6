// SPDX-License-Identifier: Apache-2.0
#include "os/slow_requests.h"

#include <atomic>
#include <exception>
#include <mutex>

#include "os/node.h"

namespace stoker {
namespace {

// As many as a client of shared storage has under way at once without being a burden to others.
constexpr unsigned kAtOnce = 32;
// A disk of this machine answers sooner; a journey through the network takes longer.
constexpr int64_t kLongWaitNs = 200'000;
constexpr size_t kLookAfter = 8;

}  // namespace

void SlowRequests::run(size_t count, const std::function<void(size_t)>& work) {
  size_t done = 0;
  const int64_t begin = monotonic_ns(), used = thread_cpu_ns();
  while (done < count && !slow_) {
    work(done++);
    if (done % kLookAfter != 0) continue;
    const int64_t waited = monotonic_ns() - begin - (thread_cpu_ns() - used);
    slow_ = waited > kLongWaitNs * static_cast<int64_t>(done);
  }
  if (done == count) return;
  if (pool_ == nullptr) pool_ = std::make_unique<WorkerPool>(kAtOnce);
  std::mutex mutex;
  std::exception_ptr failure;
  std::atomic<bool> failed = false;
  pool_->run(count - done, [&](size_t i) {
    if (failed) return;  // nothing new is begun
    try {
      work(done + i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      failed = true;
    }
  });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace stoker
