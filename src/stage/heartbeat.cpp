// SPDX-License-Identifier: Apache-2.0
#include "stage/heartbeat.h"

#include <signal.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace stoker {

struct Heartbeat::Thread {
  std::mutex mutex;
  std::condition_variable over;
  bool ended = false;
  std::thread thread;
};

Heartbeat::Heartbeat(std::function<void()> beat, std::chrono::milliseconds pause)
    : thread_(std::make_unique<Thread>()) {
  Thread& own = *thread_;
  // Signals are for the threads that expect them, also where they wait for a command to end.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  own.thread = std::thread([&own, beat = std::move(beat), pause] {
    std::unique_lock lock(own.mutex);
    while (!own.over.wait_for(lock, pause, [&own] { return own.ended; })) beat();
  });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(thread_->mutex);
    thread_->ended = true;
  }
  thread_->over.notify_one();
  thread_->thread.join();
}

}  // namespace stoker
