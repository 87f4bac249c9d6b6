// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace stoker {
namespace {

constexpr std::string_view kUnitLetters = "kMGTPE";

std::string three_digits(double value) {
  constexpr std::array<std::string_view, 7> kUnits = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  size_t unit = 0;
  // 999.5 would round to a fourth digit.
  for (; value >= 999.5 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  if (unit == 0) return fmt::format("{:.0f} B", value);
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, kUnits[unit]);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes the digits at the front of `text`; nothing where there are none or too many for 64 bits.
std::optional<uint64_t> take_digits(std::string_view& text) {
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  uint64_t value = 0;
  for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1)) {
    if (__builtin_mul_overflow(value, uint64_t{10}, &value) ||
        __builtin_add_overflow(value, static_cast<uint64_t>(text.front() - '0'), &value)) {
      return std::nullopt;
    }
  }
  return value;
}

// Bytes of the unit that is all of `text`: "", "B", "k", "KiB"...
std::optional<uint64_t> parse_unit(std::string_view text) {
  if (!text.empty() && text.back() == 'B') text.remove_suffix(1);
  if (text.empty()) return 1;
  const char letter = text.front() == 'K' ? 'k' : text.front();
  size_t power = kUnitLetters.find(letter);
  if (power == std::string_view::npos && letter >= 'a' && letter <= 'z') {
    power = kUnitLetters.find(static_cast<char>(letter - 'a' + 'A'));
  }
  if (power == std::string_view::npos) return std::nullopt;
  text.remove_prefix(1);
  if (!text.empty() && text != "i") return std::nullopt;
  const uint64_t base = text.empty() ? 1000 : 1024;
  uint64_t unit = base;
  for (; power > 0; --power) unit *= base;
  return unit;
}

}  // namespace

std::string format_bytes(uint64_t bytes) { return three_digits(static_cast<double>(bytes)); }

std::string format_rate(double bytes_per_s) {
  if (!std::isfinite(bytes_per_s) || bytes_per_s < 0) return "n/a";
  return three_digits(bytes_per_s) + "/s";
}

std::string format_count(uint64_t count) {
  std::string text = std::to_string(count);
  for (size_t from_end = 3; from_end < text.size(); from_end += 4) {
    text.insert(text.size() - from_end, 1, ',');
  }
  return text;
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "n/a";
  if (seconds == 0) return "0 s";
  if (seconds < 59.5) {
    constexpr std::array<std::string_view, 4> kUnits = {"s", "ms", "µs", "ns"};
    size_t unit = 0;
    // What rounds to 1000 of a unit is 1 of the next.
    for (; seconds < 0.9995 && unit + 1 < kUnits.size(); ++unit) seconds *= 1000;
    return fmt::format("{:.{}f} {}", seconds, seconds < 9.95 ? 1 : 0, kUnits[unit]);
  }
  if (seconds < 3599.5) {
    const auto whole = static_cast<uint64_t>(std::llround(seconds));
    return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  }
  const double minutes = std::round(seconds / 60);
  if (minutes < 24 * 60) {
    const auto whole = static_cast<uint64_t>(minutes);
    return fmt::format("{} h {:02} min", whole / 60, whole % 60);
  }
  const double hours = std::round(seconds / 3600);
  return fmt::format("{:.0f} d {:02.0f} h", std::floor(hours / 24), std::fmod(hours, 24));
}

std::optional<uint64_t> parse_size(std::string_view text) {
  const auto whole = take_digits(text);
  if (!whole) return std::nullopt;
  uint64_t fraction = 0;
  uint64_t fraction_unit = 1;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    const size_t before = text.size();
    const auto digits = take_digits(text);
    const size_t count = before - text.size();
    if (!digits || count > 18) return std::nullopt;  // 10^19 exceeds 63 bits
    fraction = *digits;
    for (size_t i = 0; i < count; ++i) fraction_unit *= 10;
  }
  if (text.size() > 1 && text.front() == ' ') text.remove_prefix(1);
  const auto unit = parse_unit(text);
  if (!unit || (*unit == 1 && fraction != 0)) return std::nullopt;
  __extension__ using Wide = unsigned __int128;
  const Wide bytes = Wide{*whole} * *unit + Wide{fraction} * *unit / fraction_unit;
  if (bytes > UINT64_MAX) return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

}  // namespace stoker
