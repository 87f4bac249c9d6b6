// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/worker_pool.h"

namespace stoker {

/// Many small requests to storage. Where each waits, as on shared storage, they are made side by
/// side; where they are answered at once, one after the other, which is then faster.
class SlowRequests {
 public:
  /// Calls work(0) … work(count-1), each once, from several threads where the storage turns out to
  /// be slow. The first exception is rethrown when all have ended.
  void run(size_t count, const std::function<void(size_t)>& work);
  /// Whether they have turned out to wait.
  bool slow() const { return slow_; }

 private:
  bool slow_ = false;
  std::unique_ptr<WorkerPool> pool_;  // where slow
};

}  // namespace stoker
