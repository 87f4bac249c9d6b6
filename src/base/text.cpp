// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace stoker {
namespace {

uint8_t byte_at(std::string_view text, size_t at) { return static_cast<uint8_t>(text[at]); }

struct CodePoint {
  uint32_t value = 0;
  size_t length = 0;  // 0: not UTF-8
};

// REQUIRES: !text.empty().
CodePoint first_code_point(std::string_view text) {
  const uint8_t lead = byte_at(text, 0);
  if (lead < 0x80) return {lead, 1};
  const size_t length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (length == 0 || text.size() < length) return {};
  uint32_t value = lead & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte_at(text, i) & 0xC0) != 0x80) return {};
    value = (value << 6) | (byte_at(text, i) & 0x3F);
  }
  constexpr std::array<uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value < 0xE000;
  if (value < kLeast[length] || surrogate || value > 0x10FFFF) return {};
  return {value, length};
}

bool is_safe_to_print(uint32_t code_point) {
  if (code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0)) return false;
  if (code_point >= 0x2028 && code_point <= 0x202E) return false;  // line ends, direction
  return code_point < 0x2066 || code_point > 0x2069;               // direction
}

constexpr std::string_view kHexDigits = "0123456789ABCDEF";

void append_hex(std::string& out, std::string_view prefix, uint8_t byte) {
  out += prefix;
  out += kHexDigits[byte >> 4];
  out += kHexDigits[byte & 15];
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

// Insertions, deletions, substitutions and swaps of neighbours that make `a` into `b`.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> two_back(b.size() + 1);
  std::vector<size_t> back(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    two_back.swap(back);
    back.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({back[j] + 1, row[j - 1] + 1, back[j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], two_back[j - 2] + 1);
    }
  }
  return row[b.size()];
}

// Where the set that opens at pattern[at] closes; npos where it does not.
size_t set_end(std::string_view pattern, size_t at) {
  ++at;
  if (at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^')) ++at;
  return pattern.find(']', at + 1);  // a ] right at the begin is a member
}

// `set` is what stands between the brackets.
bool in_set(std::string_view set, char c) {
  const bool negated = set.front() == '!' || set.front() == '^';
  if (negated) set.remove_prefix(1);
  const auto value = static_cast<uint8_t>(c);
  bool found = false;
  for (size_t i = 0; i < set.size(); ++i) {
    const bool range = i + 2 < set.size() && set[i + 1] == '-';
    const uint8_t last = byte_at(set, range ? i + 2 : i);
    found = found || (value >= byte_at(set, i) && value <= last);
    if (range) i += 2;
  }
  return found != negated;
}

// Matches `c` against the single-byte element at pattern[at]; returns where the next element
// begins, or npos for no match. REQUIRES: no * at pattern[at].
size_t match_one(std::string_view pattern, size_t at, char c) {
  constexpr size_t kNo = std::string_view::npos;
  if (pattern[at] == '?') return c != '/' ? at + 1 : kNo;
  if (pattern[at] == '[') {
    const size_t end = set_end(pattern, at);
    if (end != kNo) {
      const bool member = c != '/' && in_set(pattern.substr(at + 1, end - at - 1), c);
      return member ? end + 1 : kNo;
    }
  }
  if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
  return pattern[at] == c ? at + 1 : kNo;
}

// A place to go on from when what follows a star did not match: the star takes more text.
struct Retry {
  size_t pattern = std::string_view::npos;  // behind the star; npos: none
  size_t text = 0;
  bool components = false;  // takes whole components only
};

}  // namespace

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    if (bytes.size() >= 8 && (load<uint64_t>(as_bytes(bytes).data()) & 0x8080808080808080u) == 0) {
      bytes.remove_prefix(8);
      continue;
    }
    const CodePoint next = first_code_point(bytes);
    if (next.length == 0) return false;
    bytes.remove_prefix(next.length);
  }
  return true;
}

std::string percent_escape(std::string_view text, std::string_view reserved) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    const bool escape =
        byte < 0x20 || byte == 0x7F || c == '%' || reserved.find(c) != std::string_view::npos;
    if (escape) {
      append_hex(out, "%", byte);
    } else {
      out += c;
    }
  }
  return out;
}

std::string percent_unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      const int high = hex_value(text[i + 1]);
      const int low = hex_value(text[i + 2]);
      if (high >= 0 && low >= 0) {
        out += static_cast<char>(high * 16 + low);
        i += 2;
        continue;
      }
    }
    out += text[i];
  }
  return out;
}

std::string printable(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const CodePoint next = first_code_point(bytes);
    const size_t length = std::max<size_t>(next.length, 1);
    if (next.length > 0 && is_safe_to_print(next.value)) {
      out += bytes.substr(0, length);
    } else if (bytes[0] == '\n') {
      out += "\\n";
    } else if (bytes[0] == '\r') {
      out += "\\r";
    } else if (bytes[0] == '\t') {
      out += "\\t";
    } else {
      for (size_t i = 0; i < length; ++i) append_hex(out, "\\x", byte_at(bytes, i));
    }
    bytes.remove_prefix(length);
  }
  return out;
}

std::optional<std::string_view> closest(std::string_view word,
                                        std::span<const std::string_view> candidates) {
  if (word.empty()) return std::nullopt;
  const std::string wanted = lower(word);
  // Two errors in a word of three letters would leave hardly anything of it.
  const size_t limit = word.size() <= 3 ? 1 : std::max<size_t>(2, word.size() / 3);
  std::optional<std::string_view> best;
  bool best_begins = false;
  size_t best_distance = 0;
  for (const std::string_view candidate : candidates) {
    const std::string name = lower(candidate);
    const bool begins = name.starts_with(wanted);
    const size_t longer = std::max(name.size(), wanted.size());
    const size_t shorter = std::min(name.size(), wanted.size());
    if (!begins && longer - shorter > limit) continue;
    const size_t distance = begins ? longer - shorter : edit_distance(wanted, name);
    if (!begins && (distance > limit || distance >= longer)) continue;
    const bool better = begins != best_begins ? begins : distance < best_distance;
    if (!best || better) {
      best = candidate;
      best_begins = begins;
      best_distance = distance;
    }
  }
  return best;
}

bool glob_match(std::string_view pattern, std::string_view text) {
  // Only the last star of each kind has to be retried: an earlier one that took more would only
  // leave the later one fewer places to begin.
  Retry star;         // *
  Retry double_star;  // ** and **/
  size_t p = 0;
  size_t t = 0;
  while (true) {
    if (p < pattern.size() && pattern[p] == '*') {
      const size_t behind = std::min(pattern.find_first_not_of('*', p), pattern.size());
      if (behind - p == 1) {
        star = {behind, t, false};
        p = behind;
        continue;
      }
      const bool begins_component = p == 0 || pattern[p - 1] == '/';
      const bool components = begins_component && behind < pattern.size() && pattern[behind] == '/';
      p = behind + (components ? 1 : 0);
      double_star = {p, t, components};
      star = {};
      continue;
    }
    if (p == pattern.size() && t == text.size()) return true;
    if (p < pattern.size() && t < text.size()) {
      const size_t next = match_one(pattern, p, text[t]);
      if (next != std::string_view::npos) {
        p = next;
        ++t;
        continue;
      }
    }
    if (star.pattern != std::string_view::npos && star.text < text.size() &&
        text[star.text] != '/') {
      t = ++star.text;
      p = star.pattern;
      continue;
    }
    star = {};
    if (double_star.pattern == std::string_view::npos) return false;
    if (double_star.components) {
      const size_t slash = text.find('/', double_star.text);
      if (slash == std::string_view::npos) return false;
      double_star.text = slash;
    }
    if (double_star.text >= text.size()) return false;
    t = ++double_star.text;
    p = double_star.pattern;
  }
}

}  // namespace stoker
