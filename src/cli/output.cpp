// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"

namespace stoker {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The code point that begins at text[at]; moves `at` behind it. Bytes that are no UTF-8 count one
// by one.
uint32_t next_code_point(std::string_view text, size_t& at) {
  const auto first = static_cast<uint8_t>(text[at++]);
  const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : first >= 0xC0 ? 1 : 0;
  uint32_t code = more == 0 ? first : first & (0x3FU >> more);
  for (int i = 0; i < more && at < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[at]);
    if ((byte & 0xC0) != 0x80) break;
    code = code << 6 | (byte & 0x3FU);
    ++at;
  }
  return code;
}

// Columns of a code point: ranges that East Asian fonts draw twice as wide, and combining marks.
size_t width_of(uint32_t code) {
  struct Range {
    uint32_t first, last;
  };
  constexpr std::array kWide = {
      Range{0x1100, 0x115F}, Range{0x2E80, 0xA4CF},   Range{0xAC00, 0xD7A3},
      Range{0xF900, 0xFAFF}, Range{0xFE30, 0xFE6F},   Range{0xFF00, 0xFF60},
      Range{0xFFE0, 0xFFE6}, Range{0x1F300, 0x1FAFF}, Range{0x20000, 0x3FFFD}};
  if ((code >= 0x300 && code <= 0x36F) || (code >= 0x200B && code <= 0x200F)) return 0;
  const bool wide = std::any_of(kWide.begin(), kWide.end(), [code](const Range& range) {
    return code >= range.first && code <= range.last;
  });
  return wide ? 2 : 1;
}

size_t terminal_width() {
  const std::string_view columns = environment("COLUMNS");
  size_t width = 0;
  std::from_chars(columns.data(), columns.data() + columns.size(), width);
  winsize size{};
  if (width == 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  constexpr size_t kDefault = 100;
  return width == 0 ? kDefault : std::max<size_t>(width, 20);
}

// Returns the errno of the first write that failed, or 0.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

std::string expanded(const std::vector<Column>& columns,
                     const std::vector<std::vector<std::string>>& rows, const Style& style) {
  size_t title_width = 0;
  for (size_t c = 1; c < columns.size(); ++c) {
    title_width = std::max(title_width, display_width(columns[c].title));
  }
  std::string text;
  for (const auto& row : rows) {
    text += style.bold(row[0]) + "\n";
    for (size_t c = 1; c < columns.size(); ++c) {
      if (row[c].empty()) continue;
      text += fmt::format("  {}  {}\n",
                          style.dim(pad_right(std::string(columns[c].title), title_width)), row[c]);
    }
  }
  return text;
}

std::string repeated(std::string_view text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

}  // namespace

Style Style::of_stdout() {
  Style style;
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  style.colour = terminal && environment("NO_COLOR").empty() && environment("TERM") != "dumb";
  style.unicode = unicode_locale();
  style.width = terminal_width();
  return style;
}

std::string Style::paint(std::string_view code, std::string_view text) const {
  if (!colour) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

bool unicode_locale() {
  std::string_view locale;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (locale.empty()) locale = environment(name);
  }
  for (const std::string_view charset : {"UTF-8", "utf-8", "UTF8", "utf8"}) {
    if (locale.find(charset) != std::string_view::npos) return true;
  }
  return false;
}

size_t display_width(std::string_view text) {
  size_t width = 0;
  for (size_t at = 0; at < text.size();) width += width_of(next_code_point(text, at));
  return width;
}

std::string pad_right(std::string text, size_t width) {
  const size_t taken = display_width(text);
  if (taken < width) text.append(width - taken, ' ');
  return text;
}

std::string pad_left(std::string text, size_t width) {
  const size_t taken = display_width(text);
  if (taken < width) text.insert(0, width - taken, ' ');
  return text;
}

std::string shorten(std::string_view text, size_t width, const Style& style) {
  if (display_width(text) <= width) return std::string(text);
  const std::string_view ellipsis = style.unicode ? "…" : "~";
  size_t taken = 0, at = 0;
  while (at < text.size()) {
    size_t next = at;
    const size_t more = width_of(next_code_point(text, next));
    if (taken + more + 1 > width) break;
    taken += more;
    at = next;
  }
  return std::string(text.substr(0, at)) + std::string(ellipsis);
}

std::string table(const std::vector<Column>& columns,
                  const std::vector<std::vector<std::string>>& rows, const Style& style) {
  std::vector<size_t> widths;
  size_t total = 0;
  for (size_t c = 0; c < columns.size(); ++c) {
    size_t width = display_width(columns[c].title);
    for (const auto& row : rows) width = std::max(width, display_width(row[c]));
    widths.push_back(width);
    total += width + (c == 0 ? 0 : 2);
  }
  if (total > style.width) return expanded(columns, rows, style);

  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (size_t c = 0; c < columns.size(); ++c) {
      if (c > 0) text += "  ";
      text += columns[c].right ? pad_left(cells[c], widths[c]) : pad_right(cells[c], widths[c]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  std::vector<std::string> titles;
  for (const Column& column : columns) titles.emplace_back(column.title);
  std::string text = style.dim(line(titles)) + "\n";
  for (const auto& row : rows) text += line(row) + "\n";
  return text;
}

std::string bar_chart(const std::vector<Bar>& bars, const Style& style) {
  constexpr size_t kShown = 10;
  // One line that says "1 more" is no shorter than the line it hides.
  const size_t shown = bars.size() <= kShown + 1 ? bars.size() : kShown;
  uint64_t smallest = UINT64_MAX, largest = 0;
  size_t name_width = 0;
  for (size_t i = 0; i < bars.size(); ++i) {
    smallest = std::min(smallest, bars[i].count);
    largest = std::max(largest, bars[i].count);
    if (i < shown) name_width = std::max(name_width, display_width(bars[i].name));
  }
  name_width = std::min(name_width, std::max<size_t>(style.width / 3, 8));
  const size_t count_width = format_count(largest).size();
  const size_t taken = 2 + name_width + 2 + count_width + 2;
  const size_t room = style.width > taken ? std::min<size_t>(style.width - taken, 40) : 0;

  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    const Bar& bar = bars[i];
    const double share =
        largest == 0 ? 0 : static_cast<double>(bar.count) / static_cast<double>(largest);
    auto length = static_cast<size_t>(share * static_cast<double>(room) + 0.5);
    if (bar.count > 0 && room > 0) length = std::max<size_t>(length, 1);
    const std::string drawn = repeated(style.unicode ? "█" : "#", length);
    text +=
        fmt::format("  {}  {}{}{}\n", pad_right(shorten(bar.name, name_width, style), name_width),
                    pad_left(format_count(bar.count), count_width), length > 0 ? "  " : "", drawn);
  }
  if (shown < bars.size()) {
    text += fmt::format("  {} {} more; smallest {}, largest {}\n", style.unicode ? "…" : "...",
                        format_count(bars.size() - shown), format_count(smallest),
                        format_count(largest));
  }
  return text;
}

std::string list_faults(const std::vector<Fault>& faults, uint64_t count, const Style& style) {
  constexpr size_t kShown = 20;
  std::string text;
  const size_t shown = std::min(faults.size(), faults.size() == kShown + 1 ? kShown + 1 : kShown);
  for (size_t i = 0; i < shown; ++i) text += fmt::format("  {}\n", faults[i].message());
  if (shown < count) {
    text += fmt::format("  {} and {} more{}\n", style.unicode ? "…" : "...",
                        format_count(count - shown), shown > 0 ? " (--json lists them)" : "");
  }
  return text;
}

std::string counted(uint64_t count, std::string_view singular) {
  const std::string_view plural = singular.ends_with('s') ? "es" : "s";
  return fmt::format("{} {}{}", format_count(count), singular, count == 1 ? "" : plural);
}

std::string counted_shards(uint64_t count, std::string_view format) {
  return counted(count, format == "folder" ? "file" : fmt::format("{} shard", format));
}

std::string unlisted_files(uint64_t count, std::string_view format) {
  return counted(count, "file") +
         (format == "folder" ? " that the list does not name" : " next to the shards");
}

std::string unused_datasets(const std::vector<std::string>& unused) {
  constexpr size_t kMostShown = 6;
  const size_t shown = std::min(unused.size(), kMostShown);
  std::string text = fmt::format("{}", fmt::join(unused.begin(), unused.begin() + shown, ", "));
  if (shown < unused.size()) text += fmt::format(" and {} more", unused.size() - shown);
  return text;
}

std::string row_index_line(const RowIndexSummary& summary) {
  const uint64_t others = summary.photos[static_cast<size_t>(DecodePath::other)];
  if (summary.all() == others) return "";
  std::string text =
      fmt::format("row index: {} of {}, {} ({:.1f} % of theirs)", format_count(summary.indexed()),
                  counted(summary.all(), "photo"), format_bytes(summary.bytes), summary.percent());
  for (size_t i = 0; i < summary.photos.size(); ++i) {
    if (i == static_cast<size_t>(DecodePath::indexed) || summary.photos[i] == 0) continue;
    text += fmt::format("; {} for {}", format_count(summary.photos[i]), kDecodePathNames[i]);
  }
  return text + "\n";
}

std::string shell_word(std::string_view path) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:@%+=,";
  if (!path.empty() && path.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(path);
  }
  std::string quoted = "'";
  for (const char c : printable(path))
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string python_literal(std::string_view path) {
  return Json(path).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string shown_within(const std::string& directory, const std::string& dataset) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path named(dataset);
  if (!fs::is_directory(named, ignored)) named = named.parent_path();
  const std::string real =
      fs::weakly_canonical(named.empty() ? "." : named, ignored).string() + "/";
  if (!directory.starts_with(real)) return printable(directory);
  return printable((named / directory.substr(real.size())).string());
}

std::string next_steps(std::string_view command, std::string_view what, std::string_view dataset,
                       const Style& style) {
  const std::string line = fmt::format("{} {}", command, shell_word(dataset));
  const std::string python = fmt::format("ds = stoker.open({}); ds[0]", python_literal(dataset));
  return fmt::format("next: {}   {}\n      python: {}\n", style.bold(line), what,
                     style.bold(python));
}

void print(std::string_view text) {
  const int failure = write_all(STDOUT_FILENO, text);
  if (failure == 0 || failure == EPIPE) return;
  throw system_error("standard output", "write", failure);
}

void print_error(std::string_view text) { write_all(STDERR_FILENO, text); }

}  // namespace stoker
