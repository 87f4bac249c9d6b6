// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/json_fwd.h"

// Compiled once, in json.cpp: the largest part of what every file that uses it would compile.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace stoker {

/// Arrays and objects within one another. Nothing that we write has ten levels; copying, comparing
/// and printing a document recurse, so thousands of them would overflow the stack.
inline constexpr int kMostJsonLevels = 64;

/// Where a document has more than kMostJsonLevels.
class NestedTooDeep : public Json::exception {
 public:
  NestedTooDeep() : exception(101, "arrays and objects are nested too deeply") {}
};

/// Every JSON text that is read goes through one of these two.
/// Throws Json::parse_error, or NestedTooDeep before anything is parsed.
Json parse_json(std::string_view text);
/// The same, but is_discarded() says of the result that the text is not JSON, or nested too deeply.
Json parse_json_or_discard(std::string_view text);

/// Where a whole number is expected and the document has a fraction, or one that does not fit.
class NotWhole : public Json::exception {
 public:
  NotWhole() : exception(302, "a whole number in range is expected") {}
};

/// Like json.get<T>(), which for a number takes any other number: 1e22 as uint64_t is undefined
/// behaviour, -1 a large number.
template <typename T>
T checked(const Json& json) {
  if constexpr (std::integral<T> && !std::same_as<T, bool>) {
    if (json.is_number_unsigned() && std::in_range<T>(json.get<uint64_t>())) {
      return static_cast<T>(json.get<uint64_t>());
    }
    if (json.is_number_integer() && !json.is_number_unsigned() &&
        std::in_range<T>(json.get<int64_t>())) {
      return static_cast<T>(json.get<int64_t>());
    }
    throw NotWhole();
  } else {
    return json.get<T>();
  }
}

}  // namespace stoker
