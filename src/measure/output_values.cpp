// SPDX-License-Identifier: Apache-2.0
#include "measure/output_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/text.h"
#include "os/node.h"

namespace stoker {
namespace {

// A line that says how fast it is going is shorter; a regular expression on a long one is slow.
constexpr size_t kLongestLine = 2000;
constexpr int64_t kFlushNs = 1'000'000'000;

std::regex compiled(const std::string& pattern) {
  try {
    std::regex made(pattern, std::regex::ECMAScript | std::regex::optimize);
    if (made.mark_count() < 1) {
      throw Error(ErrorKind::usage,
                  fmt::format("--pattern '{}': needs a group around the number, as in "
                              "'images/sec: ([0-9.]+)'",
                              printable(pattern)));
    }
    return made;
  } catch (const std::regex_error& error) {
    throw Error(ErrorKind::usage,
                fmt::format("--pattern '{}': {}", printable(pattern), printable(error.what())));
  }
}

}  // namespace

std::string longest_literal(std::string_view pattern) {
  // Alternatives and what may be repeated no time are not followed up.
  for (const std::string_view other : {"|", "\\x", "\\u", "\\c"}) {
    if (pattern.find(other) != std::string_view::npos) return "";
  }
  std::string best;
  std::string current;
  int depth = 0;
  const auto end = [&] {
    if (current.size() > best.size()) best = current;
    current.clear();
  };
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c == '[') {
      while (i < pattern.size() && pattern[i] != ']') i += pattern[i] == '\\' ? 2 : 1;
    }
    if (c == '?' || c == '*' || c == '{') {
      if (!current.empty()) current.pop_back();
      if (c == '{') i = std::min(pattern.find('}', i), pattern.size() - 1);
    }
    const bool escaped = c == '\\' && i + 1 < pattern.size();
    const bool plain =
        escaped
            ? std::string_view(".[](){}*+?^$/\\|").find(pattern[i + 1]) != std::string_view::npos
            : std::string_view(".[](){}*+?^$\\").find(c) == std::string_view::npos;
    if (depth == 0 && plain) {
      current += escaped ? pattern[i + 1] : c;
    } else {
      end();
    }
    if (escaped) ++i;
  }
  end();
  return best;
}

OutputValues::OutputValues(const std::string& pattern, const RunInfo& info)
    : pattern_(compiled(pattern)),
      literal_(longest_literal(pattern)),
      begin_ns_(info.clock_begin_ns),
      writer_(info.directory + "/values.columns", {"time_ns"}, {"value"}) {}

void OutputValues::take(size_t stream, std::string_view bytes) {
  std::string& line = lines_[stream];
  for (const char c : bytes) {
    if (c == '\n' || c == '\r') {
      take_line(line);
      line.clear();
    } else if (line.size() < kLongestLine) {
      line += c;
    }
  }
}

void OutputValues::finish() {
  for (std::string& line : lines_) {
    take_line(line);
    line.clear();
  }
  writer_.flush();
}

bool OutputValues::find(const std::regex& pattern, const std::string& line, double& value) {
  std::smatch found;
  if (!std::regex_search(line, found, pattern) || !found[1].matched) return false;
  std::string text = found[1];
  std::erase(text, ',');  // 1,234.5
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

void OutputValues::take_line(const std::string& line) {
  double value = 0;
  if (line.empty() || line.find(literal_) == std::string::npos) return;
  if (!find(pattern_, line, value)) return;
  const int64_t now_ns = monotonic_ns() - begin_ns_;
  writer_.add(&now_ns, &value);
  if (now_ns < next_flush_ns_) return;
  writer_.flush();
  next_flush_ns_ = now_ns + kFlushNs;
}

}  // namespace stoker
