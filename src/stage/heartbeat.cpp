// SPDX-License-Identifier: Apache-2.0
#include "stage/heartbeat.h"

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
  own.thread = std::thread([&own, beat = std::move(beat), pause] {
    std::unique_lock lock(own.mutex);
    while (!own.over.wait_for(lock, pause, [&own] { return own.ended; })) beat();
  });
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
