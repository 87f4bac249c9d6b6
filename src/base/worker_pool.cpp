// SPDX-License-Identifier: Apache-2.0
#include "base/worker_pool.h"

#include <atomic>
#include <system_error>

namespace stoker {

struct WorkerPool::Job {
  Job(size_t total, const std::function<void(size_t)>& function) : count(total), work(function) {}
  const size_t count;
  const std::function<void(size_t)>& work;  // outlives the job: run() waits for it
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::condition_variable ended;
  size_t done = 0;
};

WorkerPool::WorkerPool(unsigned threads) {
  threads_.reserve(threads);
  try {
    for (unsigned i = 1; i < threads; ++i) threads_.emplace_back([this] { serve(); });
  } catch (const std::system_error&) {
    return;  // no more to be had: fewer do the work
  }
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::help(Job& job) {
  size_t mine = 0;
  for (size_t i = job.next++; i < job.count; i = job.next++, ++mine) job.work(i);
  if (mine == 0) return;
  const std::lock_guard lock(job.mutex);
  job.done += mine;
  if (job.done == job.count) job.ended.notify_all();
}

void WorkerPool::run(size_t count, const std::function<void(size_t)>& work) {
  const auto job = std::make_shared<Job>(count, work);
  if (count > 1 && !threads_.empty()) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(job);
    wake_.notify_all();
  }
  help(*job);
  std::unique_lock lock(job->mutex);
  job->ended.wait(lock, [&] { return job->done == count; });
}

void WorkerPool::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
    if (ending_) return;
    const std::shared_ptr<Job> job = jobs_.front();
    if (job->next >= job->count) {  // nothing left to begin
      jobs_.pop_front();
      continue;
    }
    lock.unlock();
    help(*job);
    lock.lock();
  }
}

}  // namespace stoker
