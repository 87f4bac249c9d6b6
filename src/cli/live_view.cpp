// SPDX-License-Identifier: Apache-2.0
#include "cli/live_view.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/units.h"
#include "cli/output.h"

namespace stoker {
namespace {

constexpr size_t kPanel = 3;  // lines: a rule, and two of figures

std::string sparkline(const std::deque<double>& values, bool unicode) {
  static constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr char kPlain[] = "_.-=+*#@";
  const double most = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  std::string text;
  for (const double value : values) {
    const double share = most > 0 ? value / most : 0;
    const auto level = static_cast<size_t>(std::clamp(share * 8, 0.0, 7.0));
    text += unicode ? std::string(kBlocks[level]) : std::string(1, kPlain[level]);
  }
  return text;
}

std::string bar(double share, size_t width, bool unicode) {
  const auto full =
      static_cast<size_t>(std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(width)));
  std::string text = "[";
  for (size_t i = 0; i < width; ++i) text += i < full ? (unicode ? "■" : "|") : " ";
  return text + "]";
}

std::string_view dot_of(bool unicode) { return unicode ? " · " : ", "; }

}  // namespace

std::string steps_line(double seconds, const LiveSteps& steps, bool unicode) {
  std::string line = format_duration(seconds);
  if (!steps.any()) return line;
  const std::string_view dot = dot_of(unicode);
  const double rate = steps.per_s();
  const std::string number =
      rate < 10 ? fmt::format("{:.2g}", rate) : format_count(static_cast<uint64_t>(rate));
  line += fmt::format("{}{} {}/s {}", dot, number, steps.counts_samples() ? "samples" : "steps",
                      sparkline(steps.rates(), unicode));
  if (steps.wait_share()) line += fmt::format("{}waiting {:.0f} %", dot, 100 * *steps.wait_share());
  return line + fmt::format("{}{} steps", dot, format_count(steps.steps()));
}

std::string resources_line(const RunInfo& info, const ResourceSample& now,
                           const ResourceSample& before, bool unicode) {
  const std::string_view dot = dot_of(unicode);
  const double seconds = std::max(now.time_s - before.time_s, 1e-9);
  const double load = std::max(0.0, now.cpu_s - before.cpu_s) / seconds;
  const auto cores = static_cast<double>(std::max(info.cores, 1U));
  std::string line =
      fmt::format("CPU {} {:.1f} of {} cores", bar(load / cores, 10, unicode), load, info.cores);
  line += fmt::format("{}memory ", dot);
  if (info.memory_limit > 0) {
    line +=
        fmt::format("{} {} of {}",
                    bar(static_cast<double>(now.memory()) / static_cast<double>(info.memory_limit),
                        10, unicode),
                    format_bytes(now.memory()), format_bytes(info.memory_limit));
  } else {
    line += format_bytes(now.memory());
  }
  line += fmt::format("{}{} threads", dot, now.threads);
  const double disk = static_cast<double>(now.read_disk_bytes -
                                          std::min(now.read_disk_bytes, before.read_disk_bytes));
  if (disk > 0) line += fmt::format("{}disk {}", dot, format_rate(disk / seconds));
  if (now.gpu_busy >= 0) {
    line +=
        fmt::format("{}GPU {:.0f} %, {}", dot, 100 * now.gpu_busy, format_bytes(now.gpu_memory));
  }
  return line;
}

bool LiveTerminal::possible() {
  const char* term = std::getenv("TERM");
  winsize size{};
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 &&
         ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb" &&
         ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 3 * kPanel &&
         ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
}

LiveTerminal::LiveTerminal() {
  if (::openpty(&ours_, &theirs_, nullptr, nullptr, nullptr) != 0) {
    throw system_error("a terminal for the command", "cannot be made", errno);
  }
  ::fcntl(ours_, F_SETFL, O_NONBLOCK);
  ::fcntl(ours_, F_SETFD, FD_CLOEXEC);
  ::tcgetattr(STDIN_FILENO, &before_);
  ::tcsetattr(theirs_, TCSANOW, &before_);
  termios raw = before_;
  ::cfmakeraw(&raw);
  raw.c_cc[VMIN] = 0;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  print_error(std::string(kPanel, '\n'));
  take_size();
  print_error(fmt::format("\x1b[{};1H", rows_ - kPanel));
}

LiveTerminal::~LiveTerminal() {
  print_error(fmt::format("\x1b[r\x1b[{};1H\x1b[J", rows_ - kPanel + 1));
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  ::close(ours_);
  ::close(theirs_);
}

void LiveTerminal::take_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 2 * kPanel) {
    rows_ = size.ws_row;
    columns_ = size.ws_col;
    size.ws_row = static_cast<unsigned short>(size.ws_row - kPanel);
    ::ioctl(ours_, TIOCSWINSZ, &size);
  }
  print_error(fmt::format("\x1b[1;{}r", rows_ - kPanel));
}

int LiveTerminal::typed() { return STDIN_FILENO; }

void LiveTerminal::show(std::string_view output) {
  while (!output.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, output.data(), output.size());
    if (written <= 0) return;
    output.remove_prefix(static_cast<size_t>(written));
  }
}

void LiveTerminal::resized() {
  print_error(
      "\x1b"
      "7");
  take_size();
  print_error(
      "\x1b"
      "8");
  draw(lines_);
}

void LiveTerminal::draw(const std::vector<std::string>& lines) {
  lines_ = lines;
  std::string text =
      "\x1b"
      "7";
  const std::string title = " stoker time ";
  std::string rule;
  for (size_t i = 0; i + title.size() < columns_; ++i) rule += unicode_locale() ? "─" : "-";
  text += fmt::format("\x1b[{};1H\x1b[K\x1b[2m{}{}\x1b[0m", rows_ - kPanel + 1, title, rule);
  for (size_t i = 0; i < std::min(lines.size(), kPanel - 1); ++i) {
    text += fmt::format("\x1b[{};1H\x1b[K{}", rows_ - kPanel + 2 + i, lines[i]);
  }
  print_error(text +
              "\x1b"
              "8");
}

}  // namespace stoker
