// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "stage/staged_copy.h"

namespace stoker {

/// Told what a person who waits should know: one line, without its end.
using Notify = std::function<void(const std::string&)>;

/// Waits for work that other processes have claimed, and says so. A process that is stopped, or
/// suspended with its job, keeps its claim for as long as it likes; the work is then done again,
/// which is always correct: see staged_copy.h. Safe from several threads.
class Patience {
 public:
  Patience(const StagedCopy& copy, Notify notify);

  /// To be called again and again for a claim of another process. True once that process has been
  /// stopped, or has given no sign of life, for so long that the work should not wait for it.
  bool is_over(const std::string& claim);

 private:
  using Clock = std::chrono::steady_clock;
  struct Wait {
    Clock::time_point begin, looked_at;
    std::optional<Clock::time_point> stalled;
    bool over = false;
  };
  void look(const std::string& claim, Wait& wait, Clock::time_point now);
  void tell_once(const std::string& mark, const char* kind, const std::string& text);

  const StagedCopy& copy_;
  Notify notify_;
  std::mutex mutex_;
  std::map<std::string, Wait> waits_;
  std::set<std::string> told_;
};

}  // namespace stoker
