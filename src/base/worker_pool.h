// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace stoker {

/// Threads that wait for work, so that small pieces of it do not pay for starting one.
class WorkerPool {
 public:
  /// `threads` counts the caller of run(), who works as well.
  explicit WorkerPool(unsigned threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Calls work(0) … work(count-1), spread over the threads; returns when all have ended.
  /// `work` must not throw. May be called from several threads at once.
  void run(size_t count, const std::function<void(size_t)>& work);

 private:
  struct Job;
  static void help(Job& job);
  void serve();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Job>> jobs_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace stoker
