// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "pack/pack.h"

namespace stoker {
namespace {

[[noreturn]] void wrong(const std::string& message) { throw Error(ErrorKind::usage, message); }

void check_split_name(std::string_view name, std::string_view text) {
  std::string_view why;
  if (name.empty()) why = "is empty";
  if (name.find('/') != std::string_view::npos) why = "contains a slash";
  if (name.starts_with('.')) why = "begins with a dot";
  if (name.size() > kLongestShardName) why = "is too long";
  if (!is_utf8(name)) why = "is not UTF-8";
  if (why.empty()) return;
  wrong(fmt::format("--split '{}': the name '{}' {}, so it cannot be a directory", printable(text),
                    printable(name), why));
}

}  // namespace

Shares parse_split(std::string_view text) {
  Shares shares;
  std::set<std::string_view> names;
  double sum = 0;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      wrong(fmt::format("--split '{}': should look like train=0.9,val=0.1", printable(text)));
    }
    const std::string_view name = part.substr(0, equals);
    const std::string_view digits = part.substr(equals + 1);
    check_split_name(name, text);
    if (!names.insert(name).second) {
      wrong(fmt::format("--split '{}': '{}' is named twice", printable(text), printable(name)));
    }
    double share = 0;
    const auto [last, error] = std::from_chars(digits.data(), digits.data() + digits.size(), share);
    const bool number = error == std::errc() && last == digits.data() + digits.size();
    if (!number || !std::isfinite(share) || share <= 0) {
      wrong(fmt::format("--split '{}': the share of '{}' should be a number above 0",
                        printable(text), printable(name)));
    }
    shares.emplace_back(name, share);
    sum += share;
  }
  if (std::abs(sum - 1) > 1e-6) {
    std::vector<std::string> scaled;
    for (const auto& [name, share] : shares) {
      scaled.push_back(fmt::format("{}={:.4g}", printable(name), share / sum));
    }
    wrong(fmt::format("--split '{}': the shares sum to {:g}, not 1; perhaps {}", printable(text),
                      sum, fmt::join(scaled, ",")));
  }
  return shares;
}

}  // namespace stoker
