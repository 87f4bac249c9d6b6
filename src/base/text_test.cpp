// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <vector>

namespace stoker {
namespace {

TEST(Text, AcceptsUtf8) {
  for (const std::string_view text :
       {"", "plain", "longer than eight bytes", "é", "€", "😀", "\xF4\x8F\xBF\xBF", "12345678é",
        "\xED\x9F\xBF", "\xEE\x80\x80", "\xC2\x80", "\xE0\xA0\x80", "\xF0\x90\x80\x80"}) {
    EXPECT_TRUE(is_utf8(text)) << printable(text);
  }
  EXPECT_TRUE(is_utf8(std::string_view("\0", 1)));
}

TEST(Text, RefusesWhatIsNotUtf8) {
  for (const std::string_view text :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF", "\xED\xA0\x80",
        "\xED\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3", "\xE2\x82",
        "\xF0\x9F\x98", "\xC3(", "\xE2(\xA1", "12345678\xE9", "1234567\xE9z"}) {
    EXPECT_FALSE(is_utf8(text)) << printable(text);
  }
}

TEST(Text, PercentEscapes) {
  EXPECT_EQ(percent_escape("a b/c"), "a b/c");
  EXPECT_EQ(percent_escape("a b/c", " /"), "a%20b%2Fc");
  EXPECT_EQ(percent_escape("100%\n\x7F"), "100%25%0A%7F");
  EXPECT_EQ(percent_escape("é"), "é");
  EXPECT_EQ(percent_escape(std::string_view("\0", 1)), "%00");
}

TEST(Text, PercentUnescapeGivesTheTextBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(percent_unescape(percent_escape(all, "/,;=\xFF")), all);
  EXPECT_EQ(percent_unescape("%2f%2F"), "//");
  for (const std::string_view text : {"%", "%2", "%zz", "%%", "%2g", "a%"}) {
    EXPECT_EQ(percent_unescape(text), text);
  }
  EXPECT_EQ(percent_unescape("%%41"), "%A");
}

TEST(Text, PrintableLeavesNothingThatMovesTheCursor) {
  EXPECT_EQ(printable("shard-é-😀.tar"), "shard-é-😀.tar");
  EXPECT_EQ(printable("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(printable("\x1B[31m"), "\\x1B[31m");
  EXPECT_EQ(printable("\xFF\xC3"), "\\xFF\\xC3");
  EXPECT_EQ(printable("\x7F"), "\\x7F");
  EXPECT_EQ(printable("\xC2\x9B"), "\\xC2\\x9B");           // C1 control
  EXPECT_EQ(printable("\xE2\x80\xAE"), "\\xE2\\x80\\xAE");  // right-to-left override
  EXPECT_EQ(printable("\xE2\x80\xA8"), "\\xE2\\x80\\xA8");  // line separator
  EXPECT_EQ(printable(std::string_view("\0z", 2)), "\\x00z");
}

TEST(Text, ClosestFindsTheCommandMeant) {
  constexpr std::array<std::string_view, 6> kCommands = {"pack",  "check",  "info",
                                                         "bench", "verify", "index"};
  EXPECT_EQ(closest("pack", kCommands), "pack");
  EXPECT_EQ(closest("PACK", kCommands), "pack");
  EXPECT_EQ(closest("pakc", kCommands), "pack");
  EXPECT_EQ(closest("packs", kCommands), "pack");
  EXPECT_EQ(closest("ver", kCommands), "verify");
  EXPECT_EQ(closest("chekc", kCommands), "check");
  EXPECT_EQ(closest("ifno", kCommands), "info");
  EXPECT_EQ(closest("in", kCommands), "info");
  EXPECT_EQ(closest("ind", kCommands), "index");
  EXPECT_EQ(closest("bnech", kCommands), "bench");
  EXPECT_EQ(closest("", kCommands), std::nullopt);
  EXPECT_EQ(closest("zz", kCommands), std::nullopt);
  EXPECT_EQ(closest("frobnicate", kCommands), std::nullopt);
  EXPECT_EQ(closest(std::string(1'000'000, 'a'), kCommands), std::nullopt);
  EXPECT_EQ(closest("pack", {}), std::nullopt);
}

TEST(Text, ClosestPrefersWhatTheWordBegins) {
  constexpr std::array<std::string_view, 2> kOptions = {"--reads", "--read-ahead"};
  EXPECT_EQ(closest("--read-", kOptions), "--read-ahead");
  EXPECT_EQ(closest("--read", kOptions), "--reads");
}

TEST(Text, GlobMatches) {
  constexpr std::array<std::array<std::string_view, 2>, 33> kMatching = {{
      {"", ""},
      {"*", ""},
      {"*", "abc"},
      {"**", "a/b/c"},
      {"a*c", "abbc"},
      {"a?c", "abc"},
      {"*.tar", "train-000.tar"},
      {"*/*.tar", "a/b.tar"},
      {"**/*.tar", "b.tar"},
      {"**/*.tar", "x/y/b.tar"},
      {"a/**/b", "a/b"},
      {"a/**/b", "a/x/y/b"},
      {"a/**", "a/x/y"},
      {"a/**", "a/"},
      {"[a-c]x", "bx"},
      {"[!a-c]x", "dx"},
      {"[^a-c]x", "dx"},
      {"[]]", "]"},
      {"[!]]", "x"},
      {"[a-]", "-"},
      {"[-a]", "-"},
      {"[", "["},
      {"[a", "[a"},
      {"[!", "[!"},
      {"[]", "[]"},
      {"\\*", "*"},
      {"\\[a]", "[a]"},
      {"a\\", "a\\"},
      {"***", "a/b"},
      {"shard-[0-9][0-9].tar", "shard-07.tar"},
      {"a**b", "a/x/b"},
      {"*a*", "bab"},
      {"**/a/**/b", "x/a/y/a/b"},
  }};
  for (const auto& [pattern, text] : kMatching) {
    EXPECT_TRUE(glob_match(pattern, text)) << pattern << " " << text;
  }
}

TEST(Text, GlobDoesNotMatch) {
  constexpr std::array<std::array<std::string_view, 2>, 20> kOther = {{
      {"", "a"},        {"a", ""},        {"?", ""},           {"*", "a/b"},
      {"a?c", "a/c"},   {"a[/]c", "a/c"}, {"a[!x]c", "a/c"},   {"*.tar", "a/b.tar"},
      {"**/b", "ab"},   {"a/**/b", "ab"}, {"a/**/b", "a/xb"},  {"a/**", "a"},
      {"[a-c]", "d"},   {"[!a-c]", "b"},  {"[c-a]", "b"},      {"\\*", "x"},
      {"*/b", "a/c/b"}, {"abc", "abcd"},  {"a**b/c", "a/b/d"}, {"A", "a"},
  }};
  for (const auto& [pattern, text] : kOther) {
    EXPECT_FALSE(glob_match(pattern, text)) << pattern << " " << text;
  }
}

// The definition, tried out in every way; exponential.
bool glob_reference(std::string_view pattern, std::string_view text, bool at_start = true) {
  if (pattern.empty()) return text.empty();
  if (pattern.starts_with("**")) {
    const std::string_view behind =
        pattern.substr(std::min(pattern.find_first_not_of('*'), pattern.size()));
    const bool components = at_start && behind.starts_with('/');
    for (size_t taken = 0; taken <= text.size(); ++taken) {
      if (components) {
        const bool whole = taken == 0 || text[taken - 1] == '/';
        if (whole && glob_reference(behind.substr(1), text.substr(taken), true)) return true;
      } else if (glob_reference(behind, text.substr(taken), false)) {
        return true;
      }
    }
    return false;
  }
  if (pattern[0] == '*') {
    for (size_t taken = 0; taken <= text.size(); ++taken) {
      if (glob_reference(pattern.substr(1), text.substr(taken), false)) return true;
      if (taken < text.size() && text[taken] == '/') return false;
    }
    return false;
  }
  if (text.empty()) return false;
  const bool one = pattern[0] == '?' ? text[0] != '/' : pattern[0] == text[0];
  return one && glob_reference(pattern.substr(1), text.substr(1), pattern[0] == '/');
}

std::vector<std::string> all_strings(std::string_view alphabet, size_t most) {
  std::vector<std::string> all = {""};
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].size() == most) break;
    for (const char c : alphabet) all.push_back(all[i] + c);
  }
  return all;
}

TEST(Text, GlobEqualsItsDefinitionOnAllShortPatterns) {
  const std::vector<std::string> texts = all_strings("ab/", 5);
  for (const std::string& pattern : all_strings("ab/*", 6)) {
    for (const std::string& text : texts) {
      ASSERT_EQ(glob_match(pattern, text), glob_reference(pattern, text))
          << '"' << pattern << "\" \"" << text << '"';
    }
  }
}

TEST(Text, GlobIsQuickOnHostilePatterns) {
  std::string stars;
  std::string double_stars;
  for (int i = 0; i < 50; ++i) {
    stars += "a*";
    double_stars += "**/a*";
  }
  const std::string text(500, 'a');
  std::string path;
  for (int i = 0; i < 250; ++i) path += "a/";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(glob_match(stars + "b", text));
  EXPECT_FALSE(glob_match("**" + stars + "b", text));
  EXPECT_FALSE(glob_match(double_stars + "b", path));
  EXPECT_FALSE(glob_match(std::string(300, '['), text));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

}  // namespace
}  // namespace stoker
