// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace stoker
