// SPDX-License-Identifier: Apache-2.0
#include "format/pax.h"

#include <gtest/gtest.h>

#include <string>

namespace stoker {
namespace {

TEST(Pax, LengthOfARecordCountsItself) {
  for (size_t value = 0; value < 2000; ++value) {
    std::string body;
    append_pax(body, "path", std::string(value, 'v'));
    ASSERT_EQ(body.size(), size_of_pax(4, value));
    ASSERT_EQ(body.substr(0, body.find(' ')), std::to_string(body.size()));
    const PaxRecords records = parse_pax(body);
    ASSERT_EQ(records.damage, "");
    ASSERT_EQ(records.path.value_or("").size(), value);
  }
}

TEST(Pax, LaterRecordsWinAndEmptyOnesTakeBack) {
  std::string body;
  append_pax(body, "path", "a");
  append_pax(body, "path", "b=\n");
  append_pax(body, "size", "17");
  EXPECT_EQ(parse_pax(body).path, "b=\n");
  EXPECT_EQ(parse_pax(body).size, 17U);
  append_pax(body, "path", "");
  EXPECT_FALSE(parse_pax(body).path);
}

TEST(Pax, EveryPrefixIsSafe) {
  std::string body;
  append_pax(body, "hdrcharset", "BINARY");
  append_pax(body, "path", "some/name.jpg");
  append_pax(body, "size", "123");
  size_t whole = 0;
  for (size_t size = 0; size <= body.size(); ++size) {
    whole += parse_pax(std::string(body, 0, size)).damage.empty() ? 1 : 0;
  }
  EXPECT_EQ(whole, 4U);  // none, one, two, three records
}

}  // namespace
}  // namespace stoker
