// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_bar.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "base/units.h"
#include "cli/output.h"

namespace stoker {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::string_view kClearLine = "\r\033[K";

std::string amount(const ProgressView& view) {
  const bool of_samples = view.total_samples > 0 || !view.counts_bytes();
  const uint64_t done = of_samples ? view.samples : view.bytes;
  const uint64_t total = of_samples ? view.total_samples : view.total_bytes;
  const auto format = of_samples ? format_count : format_bytes;
  if (total == 0) return of_samples ? counted(done, "sample") : format(done);
  return fmt::format("{} of {}", format(std::min(done, total)), format(total));
}

std::string draw_bar(double fraction, size_t width, bool unicode) {
  const auto filled = static_cast<size_t>(fraction * static_cast<double>(width));
  std::string bar;
  for (size_t i = 0; i < width; ++i) {
    bar += i < filled ? (unicode ? "█" : "#") : (unicode ? "░" : ".");
  }
  return unicode ? bar : "[" + bar + "]";
}

size_t width_of_stderr() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

// A job that was put into the background must not draw over the shell's prompt.
bool in_foreground() {
  const pid_t foreground = tcgetpgrp(STDERR_FILENO);
  return foreground == -1 || foreground == getpgrp();
}

bool can_draw() {
  const char* terminal = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

}  // namespace

ProgressView ProgressView::of(const Progress& progress) {
  return {progress.stage.load(), progress.samples.load(), progress.total_samples.load(),
          progress.bytes.load(), progress.total_bytes.load()};
}

void RateMeter::add(double seconds, uint64_t done) {
  constexpr double kWindow = 10;
  // A new stage begins to count anew.
  if (!points_.empty() && done < points_.back().second) points_.clear();
  points_.emplace_back(seconds, done);
  while (points_.size() > 2 && points_[1].first <= seconds - kWindow) points_.pop_front();
}

std::optional<double> RateMeter::rate() const {
  if (points_.size() < 2) return std::nullopt;
  const double seconds = points_.back().first - points_.front().first;
  if (seconds < 0.2) return std::nullopt;
  return static_cast<double>(points_.back().second - points_.front().second) / seconds;
}

std::string progress_line(const ProgressView& view, std::optional<double> rate, size_t width,
                          bool unicode) {
  const std::string stage(view.stage.empty() ? "working" : view.stage);
  std::string percent, speed, left;
  double fraction = 0;
  if (view.total() > 0) {
    fraction = std::min(1.0, static_cast<double>(view.done()) / static_cast<double>(view.total()));
    percent = fmt::format("{:3.0f}%", std::floor(fraction * 100));
  }
  if (rate) {
    speed = view.counts_bytes() ? format_rate(*rate)
                                : format_count(static_cast<uint64_t>(*rate)) + "/s";
    if (view.total() > 0 && *rate > 0) {
      const uint64_t missing = view.total() - std::min(view.done(), view.total());
      const double seconds = std::ceil(static_cast<double>(missing) / *rate);
      // Whole seconds: tenths of a guess would only flicker.
      left = (seconds < 60 ? fmt::format("{:.0f} s", seconds) : format_duration(seconds)) + " left";
    }
  }
  // By how much each tells; the order on the line is another.
  std::vector<std::string> parts = {stage, percent, left, amount(view), speed};
  size_t taken = 0;
  for (std::string& part : parts) {
    const size_t more = part.empty() ? 0 : display_width(part) + (taken == 0 ? 0 : 2);
    if (taken + more > width) part.clear();
    if (!part.empty()) taken += more;
  }
  constexpr size_t kShortestBar = 8, kLongestBar = 30;
  std::string bar;
  if (!percent.empty() && taken + 2 + kShortestBar + 2 <= width) {
    bar = draw_bar(fraction, std::min(width - taken - 4, kLongestBar), unicode);
  }
  std::string line;
  for (const std::string& part : {parts[0], bar, parts[1], parts[3], parts[4], parts[2]}) {
    if (part.empty()) continue;
    if (!line.empty()) line += "  ";
    line += part;
  }
  return line;
}

ProgressBar::ProgressBar(const Progress& progress) : progress_(progress) {
  if (!can_draw()) return;
  thread_ = std::thread([this] { run(); });
}

ProgressBar::~ProgressBar() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ended_changed_.notify_one();
  thread_.join();
}

void ProgressBar::run() {
  const auto begin = Clock::now();
  RateMeter meter;
  const char* stage = nullptr;
  bool drawn = false;
  std::unique_lock lock(mutex_);
  while (!ended_changed_.wait_for(lock, milliseconds(100), [this] { return ended_; })) {
    if (const char* now = progress_.stage.load(); now != stage) {
      meter.clear();
      stage = now;
    }
    const ProgressView view = ProgressView::of(progress_);
    const std::chrono::duration<double> elapsed = Clock::now() - begin;
    meter.add(elapsed.count(), view.done());
    if (elapsed < std::chrono::seconds(2) || !in_foreground()) continue;
    draw(view, meter.rate());
    drawn = true;
  }
  if (drawn && in_foreground()) print_error(kClearLine);
}

void ProgressBar::draw(const ProgressView& view, std::optional<double> rate) {
  // The last column stays free: some terminals wrap as soon as it is written.
  const std::string line = progress_line(view, rate, width_of_stderr() - 1, unicode_locale());
  print_error(std::string(kClearLine) + line);
}

}  // namespace stoker
