// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace stoker {

/// How often who is at work, or needs something, says so to other hosts: they see no processes,
/// only the times of files.
inline constexpr std::chrono::milliseconds kHeartbeat{60'000};

/// Calls `beat` again and again, on a thread of its own, as long as it exists.
class Heartbeat {
 public:
  explicit Heartbeat(std::function<void()> beat, std::chrono::milliseconds pause = kHeartbeat);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  struct Thread;
  std::unique_ptr<Thread> thread_;
};

}  // namespace stoker
