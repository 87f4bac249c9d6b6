// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace stoker {
namespace {

TEST(CheckedJson, TakesWholeNumbersThatFit) {
  EXPECT_EQ(checked<uint64_t>(parse_json("18446744073709551615")), UINT64_MAX);
  EXPECT_EQ(checked<int64_t>(parse_json("-9223372036854775808")), INT64_MIN);
  EXPECT_EQ(checked<uint32_t>(parse_json("0")), 0U);
  EXPECT_EQ(checked<int>(parse_json("-7")), -7);
  EXPECT_EQ(checked<double>(parse_json("1e22")), 1e22);
  EXPECT_EQ(checked<std::string>(parse_json("\"a\"")), "a");
}

TEST(CheckedJson, RefusesEverythingElse) {
  for (const char* text :
       {"1e22", "1.5", "-1", "18446744073709551616", "true", "null", "\"1\"", "[]", "{}"}) {
    EXPECT_THROW(checked<uint64_t>(parse_json(text)), Json::exception) << text;
  }
  EXPECT_THROW(checked<uint32_t>(parse_json("4294967296")), Json::exception);
  EXPECT_THROW(checked<int>(parse_json("2147483648")), Json::exception);
}

std::string nested(int levels, char open, char close) {
  std::string text;
  for (int i = 0; i < levels; ++i) text += open == '{' && i > 0 ? "\"a\":{" : std::string(1, open);
  return text + std::string(static_cast<size_t>(levels), close);
}

TEST(ParseJson, RefusesDeepNestingBeforeItParses) {
  for (const auto& [open, close] : {std::pair('[', ']'), std::pair('{', '}')}) {
    EXPECT_NO_THROW(parse_json(nested(kMostJsonLevels, open, close)));
    EXPECT_THROW(parse_json(nested(kMostJsonLevels + 1, open, close)), NestedTooDeep);
    EXPECT_TRUE(parse_json_or_discard(nested(1'000'000, open, close)).is_discarded());
  }
  EXPECT_THROW(parse_json(std::string(1'000'000, '[')), NestedTooDeep);
}

TEST(ParseJson, CountsNoBracketsWithinStrings) {
  const std::string brackets(1000, '[');
  EXPECT_EQ(parse_json("{\"a\": \"\\\"" + brackets + "\\\\\"}").at("a"), "\"" + brackets + "\\");
  std::string siblings = "[";
  for (int i = 0; i < 1000; ++i) siblings += "[],";
  EXPECT_EQ(parse_json(siblings + "[]]").size(), 1001U);
}

}  // namespace
}  // namespace stoker
