// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

Style style(size_t width, bool unicode = true) {
  Style style;
  style.width = width;
  style.unicode = unicode;
  return style;
}

TEST(Output, DisplayWidth) {
  EXPECT_EQ(display_width(""), 0U);
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("µs …"), 4U);
  EXPECT_EQ(display_width("猫"), 2U);
  EXPECT_EQ(display_width("e\u0301"), 1U);
  EXPECT_EQ(display_width("\xC3"), 1U);  // cut short
  EXPECT_EQ(pad_left("猫", 4), "  猫");
  EXPECT_EQ(pad_right("ab", 1), "ab");
}

TEST(Output, Shorten) {
  EXPECT_EQ(shorten("abcdef", 6, style(80)), "abcdef");
  EXPECT_EQ(shorten("abcdef", 4, style(80)), "abc…");
  EXPECT_EQ(shorten("abcdef", 4, style(80, false)), "abc~");
  EXPECT_EQ(shorten("猫猫猫", 4, style(80)), "猫…");
}

TEST(Output, Colours) {
  Style with_colour = style(80);
  with_colour.colour = true;
  EXPECT_EQ(with_colour.bad("x"), "\033[31mx\033[0m");
  EXPECT_EQ(style(80).bad("x"), "x");
}

TEST(Output, TableAligns) {
  EXPECT_EQ(table({{"field"}, {"size", true}}, {{"image", "1 B"}, {"x", "1.20 kB"}}, style(80)),
            "field     size\n"
            "image      1 B\n"
            "x      1.20 kB\n");
}

TEST(Output, NarrowTableLosesNothing) {
  EXPECT_EQ(table({{"field"}, {"size", true}, {"in"}}, {{"image", "1 B", "all"}, {"x", "", "3"}},
                  style(10)),
            "image\n"
            "  size  1 B\n"
            "  in    all\n"
            "x\n"
            "  in    3\n");
}

TEST(Output, BarChart) {
  EXPECT_EQ(bar_chart({{"cat", 1000}, {"horse", 500}, {"none", 0}, {"one", 1}}, style(27, false)),
            "  cat    1,000  ###########\n"
            "  horse    500  ######\n"
            "  none       0\n"
            "  one        1  #\n");
}

TEST(Output, BarChartOfMany) {
  std::vector<Bar> bars(11, Bar{"x", 5});
  EXPECT_EQ(bar_chart(bars, style(80)).find("more"), std::string::npos);
  bars.push_back({"y", 1234});
  const std::string text = bar_chart(bars, style(80));
  EXPECT_NE(text.find("  … 2 more; smallest 5, largest 1,234\n"), std::string::npos) << text;
  EXPECT_EQ(text.find('y'), std::string::npos);
}

TEST(Output, FaultsAreCountedBeyondTwenty) {
  const std::vector<Fault> faults(25, Fault{"a.tar", 512, "k", "", "bad"});
  const std::string text = list_faults(faults, 1000, style(80));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 21);
  EXPECT_NE(text.find("  … and 980 more (--json lists them)\n"), std::string::npos) << text;
  EXPECT_EQ(list_faults({}, 0, style(80)), "");
}

TEST(Output, Words) {
  EXPECT_EQ(counted(1, "sample"), "1 sample");
  EXPECT_EQ(counted(1281167, "sample"), "1,281,167 samples");
  EXPECT_EQ(shell_word("a/b-1.tar"), "a/b-1.tar");
  EXPECT_EQ(shell_word("it's mine"), "'it'\\''s mine'");
  EXPECT_EQ(python_literal("a \"b\"\n"), "\"a \\\"b\\\"\\n\"");
}

}  // namespace
}  // namespace stoker
