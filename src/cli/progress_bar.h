// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/progress.h"

namespace stoker {

/// What a Progress says at one moment.
struct ProgressView {
  std::string_view stage;
  uint64_t samples = 0, total_samples = 0;
  uint64_t bytes = 0, total_bytes = 0;

  static ProgressView of(const Progress& progress);
  /// Bytes where they are counted, else samples: what rate and time left are about.
  bool counts_bytes() const { return total_bytes > 0 || (total_samples == 0 && bytes > 0); }
  uint64_t done() const { return counts_bytes() ? bytes : samples; }
  uint64_t total() const { return counts_bytes() ? total_bytes : total_samples; }
};

/// How fast something grows: the mean over the last ten seconds.
class RateMeter {
 public:
  void add(double seconds, uint64_t done);
  /// Per second; nothing before there is something to compare.
  std::optional<double> rate() const;
  void clear() { points_.clear(); }

 private:
  std::deque<std::pair<double, uint64_t>> points_;
};

/// One line of at most `width` columns: stage, bar, how much of how much, rate, time left. Parts
/// that do not fit are left out, the least telling first.
std::string progress_line(const ProgressView& view, std::optional<double> rate, size_t width,
                          bool unicode);

/// Shows a Progress on stderr while it lives, from a thread of its own: only on a terminal, and
/// only what takes longer than two seconds. Leaves nothing behind on the screen.
class ProgressBar {
 public:
  explicit ProgressBar(const Progress& progress);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

 private:
  void run();
  void draw(const ProgressView& view, std::optional<double> rate);

  const Progress& progress_;
  std::mutex mutex_;
  std::condition_variable ended_changed_;
  bool ended_ = false;
  std::thread thread_;  // not running where stderr is no terminal
};

}  // namespace stoker
