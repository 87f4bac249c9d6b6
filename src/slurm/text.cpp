// SPDX-License-Identifier: Apache-2.0
#include "slurm/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>
#include <limits>

namespace stoker {
namespace {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// All of the text as a number; digits and a point only.
template <typename Number>
std::optional<Number> whole_text(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789.") != std::string_view::npos) return {};
  Number number{};
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

/// "1-3" or "07" of a node list, appended with its zeros.
void expand_range(std::string_view prefix, std::string_view range, std::string_view suffix,
                  size_t most, std::vector<std::string>& names) {
  const size_t dash = range.find('-');
  const std::string_view low = range.substr(0, dash);
  const std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
  const auto first = whole_text<uint64_t>(low);
  const auto last = whole_text<uint64_t>(high);
  if (!first || !last) return;
  for (uint64_t number = *first; number <= *last && names.size() < most; ++number) {
    names.push_back(fmt::format("{}{:0{}}{}", prefix, number, low.size(), suffix));
  }
}

}  // namespace

std::optional<double> parse_slurm_duration(std::string_view text) {
  if (text == "UNLIMITED") return std::numeric_limits<double>::infinity();
  double days = 0;
  if (const size_t dash = text.find('-'); dash != std::string_view::npos) {
    const auto number = whole_text<double>(text.substr(0, dash));
    if (!number) return std::nullopt;
    days = *number;
    text.remove_prefix(dash + 1);
  }
  const std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
  double seconds = 0;
  for (const std::string_view part : parts) {
    const auto number = whole_text<double>(part);
    if (!number) return std::nullopt;
    seconds = 60 * seconds + *number;
  }
  return days * 86400 + seconds;
}

std::optional<uint64_t> parse_slurm_memory(std::string_view text) {
  if (!text.empty() && (text.back() == 'c' || text.back() == 'n')) text.remove_suffix(1);
  if (text.empty()) return std::nullopt;
  constexpr std::string_view kUnits = "KMGTPE";
  double factor = 1;
  if (const size_t unit = kUnits.find(text.back()); unit != std::string_view::npos) {
    factor = std::pow(1024.0, static_cast<double>(unit + 1));
    text.remove_suffix(1);
  }
  const auto number = whole_text<double>(text);
  constexpr double kMost = 1e18;
  if (!number || *number * factor > kMost) return std::nullopt;
  return static_cast<uint64_t>(*number * factor);
}

std::optional<int64_t> parse_slurm_time(std::string_view text) {
  if (const auto seconds = whole_text<int64_t>(text)) return seconds;
  std::tm parts{};
  const std::string copy(text);
  const char* end = ::strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  parts.tm_isdst = -1;
  return std::mktime(&parts);
}

std::map<std::string, std::string, std::less<>> parse_tres(std::string_view text) {
  std::map<std::string, std::string, std::less<>> values;
  for (const std::string_view part : split(text, ',')) {
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) continue;
    values.emplace(part.substr(0, equals), part.substr(equals + 1));
  }
  return values;
}

std::vector<std::string> expand_nodes(std::string_view text, size_t most) {
  std::vector<std::string> names;
  while (!text.empty() && names.size() < most) {
    // A comma within brackets does not end a name.
    const size_t open = text.find_first_of("[,");
    if (open == std::string_view::npos || text[open] == ',') {
      if (open != 0) names.emplace_back(text.substr(0, open));
      text.remove_prefix(open == std::string_view::npos ? text.size() : open + 1);
      continue;
    }
    const size_t close = text.find(']', open);
    if (close == std::string_view::npos) break;
    const size_t end = std::min(text.find(',', close), text.size());
    for (const std::string_view range : split(text.substr(open + 1, close - open - 1), ',')) {
      expand_range(text.substr(0, open), range, text.substr(close + 1, end - close - 1), most,
                   names);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (names.size() == 1 && (names[0] == "None assigned" || names[0] == "(null)")) names.clear();
  return names;
}

std::string slurm_duration(uint64_t seconds) {
  const std::string clock =
      fmt::format("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
  return seconds < 86400 ? clock : fmt::format("{}-{}", seconds / 86400, clock);
}

std::string slurm_size(uint64_t bytes) {
  constexpr std::array<std::string_view, 7> kUnits = {"B",   "KiB", "MiB", "GiB",
                                                      "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1023.5 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  const int digits = value == std::floor(value) || value >= 99.95 ? 0 : (value < 9.995 ? 2 : 1);
  return fmt::format("{:.{}f} {}", value, digits, kUnits[unit]);
}

uint64_t array_tasks(std::string_view id) {
  const size_t open = id.find('[');
  if (open == std::string_view::npos) return 1;
  std::string_view ranges = id.substr(open + 1);
  ranges = ranges.substr(0, ranges.find_first_of("]%"));
  uint64_t tasks = 0;
  for (const std::string_view range : split(ranges, ',')) {
    const size_t dash = range.find('-');
    const size_t colon = std::min(range.find(':'), range.size());
    const auto first = whole_text<uint64_t>(range.substr(0, std::min(dash, colon)));
    const auto last = dash == std::string_view::npos
                          ? first
                          : whole_text<uint64_t>(range.substr(dash + 1, colon - dash - 1));
    const auto step = colon == range.size() ? std::optional<uint64_t>(1)
                                            : whole_text<uint64_t>(range.substr(colon + 1));
    if (!first || !last || *last < *first) continue;
    tasks += (*last - *first) / std::max<uint64_t>(step.value_or(1), 1) + 1;
  }
  return std::max<uint64_t>(tasks, 1);
}

SlurmTable::SlurmTable(std::string_view text) {
  size_t width = 0;
  for (std::string_view line : split(text, '\n')) {
    if (line.empty()) continue;
    const std::vector<std::string_view> cells = split(line, kSlurmDelimiter);
    if (columns_.empty()) {
      for (size_t i = 0; i < cells.size(); ++i) columns_.emplace(cells[i], i);
      width = cells.size();
    } else if (cells.size() == width) {
      rows_.emplace_back(cells.begin(), cells.end());
    } else {
      ++left_out_;
    }
  }
}

std::string_view SlurmTable::cell(size_t row, std::string_view column) const {
  const auto found = columns_.find(column);
  return found == columns_.end() ? std::string_view() : rows_[row][found->second];
}

}  // namespace stoker
