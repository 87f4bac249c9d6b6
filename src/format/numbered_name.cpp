// SPDX-License-Identifier: Apache-2.0
#include "format/numbered_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>

#include "format/shard_directory.h"

namespace stoker {
namespace {

constexpr std::string_view kDigits = "0123456789";

std::optional<uint64_t> to_number(std::string_view digits) {
  uint64_t number = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return parsed.ec == std::errc() ? std::optional(number) : std::nullopt;
}

}  // namespace

void find_series_gaps(const std::vector<std::string>& names, std::vector<Fault>& faults,
                      const SeriesNumbers& which) {
  struct Series {
    std::vector<uint64_t> numbers;
    bool padded = false;
  };
  std::map<std::tuple<std::string_view, std::string_view, size_t>, Series> all;
  for (const std::string_view name : names) {
    size_t end = name.find_last_of(kDigits) + 1;
    size_t begin = name.substr(0, end).find_last_not_of(kDigits) + 1;
    while (end > 0 && end - begin < which.fewest_digits) {
      end = begin == 0 ? 0 : name.substr(0, begin).find_last_of(kDigits) + 1;
      begin = name.substr(0, end).find_last_not_of(kDigits) + 1;
    }
    if (end == 0 || name.substr(0, begin).ends_with("-of-")) continue;
    const auto number = to_number(name.substr(begin, end - begin));
    if (!number) continue;
    Series& series = all[{name.substr(0, begin), name.substr(end), end - begin}];
    series.numbers.push_back(*number);
    series.padded = series.padded || name[begin] == '0';
  }
  for (auto& [key, series] : all) {
    const auto& [before, after, digits] = key;
    std::vector<uint64_t>& numbers = series.numbers;
    std::sort(numbers.begin(), numbers.end());
    const uint64_t beyond = numbers.back() - numbers.front();  // the first
    const bool chosen = beyond / (which.holes + 1) >= numbers.size();
    if (chosen || (which.padded && !series.padded)) continue;
    for (size_t i = 1; i < numbers.size(); ++i) {
      if (numbers[i] <= numbers[i - 1] + 1) continue;
      faults.push_back(missing_shards(before, digits, after, numbers[i - 1] + 1, numbers[i] - 1));
    }
  }
}

std::optional<NumberedName> numbered_name(std::string_view name, size_t end) {
  constexpr std::string_view kOf = "-of-";
  constexpr size_t kFewestDigits = 5;
  const std::string_view stem = name.substr(0, end);
  const size_t count_at = stem.find_last_not_of(kDigits) + 1;
  if (end - count_at < kFewestDigits || !stem.substr(0, count_at).ends_with(kOf)) return {};
  const size_t middle = count_at - kOf.size();
  const size_t number_at = stem.substr(0, middle).find_last_not_of(kDigits) + 1;
  if (middle - number_at < kFewestDigits || number_at < 2 || name[number_at - 1] != '-') return {};
  NumberedName numbered{name.substr(0, number_at), name.substr(number_at, middle - number_at),
                        name.substr(middle), 0, 0};
  const auto number = to_number(numbered.digits), count = to_number(stem.substr(count_at));
  if (!number || !count) return std::nullopt;
  numbered.number = *number;
  numbered.count = *count;
  return numbered;
}

void find_gaps(const std::vector<std::string>& names,
               std::optional<NumberedName> (*parse)(std::string_view name),
               std::vector<Fault>& faults) {
  std::map<std::tuple<std::string_view, std::string_view, size_t>, std::vector<NumberedName>> all;
  for (const std::string& name : names) {
    const auto numbered = parse(name);
    if (!numbered) continue;
    all[{numbered->before, numbered->after, numbered->digits.size()}].push_back(*numbered);
  }
  const auto missing = [&](const NumberedName& like, uint64_t first, uint64_t last) {
    faults.push_back(missing_shards(like.before, like.digits.size(), like.after, first, last));
  };
  for (const auto& [key, series] : all) {
    uint64_t next = 0;
    for (const NumberedName& there : series) {
      if (there.number >= there.count) {
        faults.push_back({fmt::format("{}{}{}", there.before, there.digits, there.after),
                          {},
                          {},
                          {},
                          "its number is not below its count"});
        continue;
      }
      if (there.number > next) missing(there, next, there.number - 1);
      next = there.number + 1;
    }
    const NumberedName& like = series.front();
    if (next < like.count) missing(like, next, like.count - 1);
  }
}

}  // namespace stoker
