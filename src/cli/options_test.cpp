// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include <gtest/gtest.h>

#include <array>

#include "base/error.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, 2> kNames = {"SRC", "DST"};
constexpr std::array kOptions = {
    Option{"--shard-size", "SIZE", "how large"},
    Option{"--include", "GLOB", "which ones"},
    Option{"--to", "FORMAT", "what it becomes"},
    Option{"--overwrite", "", "replace it"},
    kJobsOption,
    kJsonOption,
    kHelpOption,
};

Arguments parse(const std::vector<std::string>& words) { return {kNames, kOptions, words}; }

template <typename Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

TEST(Options, ACommandKeepsItsOwnOptions) {
  constexpr std::array<std::string_view, 1> kWords = {kCommandWords};
  const std::vector<std::string> given = {"--to", "tar", "python", "--to", "x", "--", "-h"};
  const Arguments arguments(kWords, kOptions, given);
  EXPECT_EQ(arguments.value("--to"), "tar");
  EXPECT_EQ(arguments.rest(), (std::vector<std::string>{"python", "--to", "x", "--", "-h"}));
  const std::vector<std::string> behind = {"--", "--to", "x"};
  EXPECT_EQ(Arguments(kWords, kOptions, behind).rest(), (std::vector<std::string>{"--to", "x"}));
}

std::string refusal_of(const std::vector<std::string>& words) {
  return refusal([&] { parse(words); });
}

TEST(Options, PositionalsAndOptionsInAnyOrder) {
  const Arguments arguments = parse({"--overwrite", "a", "--to", "tar", "b"});
  EXPECT_EQ(arguments.positional(0), "a");
  EXPECT_EQ(arguments.positional(1), "b");
  EXPECT_TRUE(arguments.flag("--overwrite"));
  EXPECT_FALSE(arguments.flag("--json"));
  EXPECT_EQ(arguments.value("--to"), "tar");
  EXPECT_EQ(arguments.value("--include"), std::nullopt);
  EXPECT_FALSE(arguments.asks_help());
}

TEST(Options, ValueBehindEqualsSign) {
  EXPECT_EQ(parse({"a", "b", "--include=x=y"}).value("--include"), "x=y");
  EXPECT_EQ(parse({"a", "b", "--include=--odd"}).value("--include"), "--odd");
  EXPECT_EQ(refusal_of({"a", "b", "--include="}), "--include needs a value: --include GLOB");
  EXPECT_EQ(refusal_of({"a", "b", "--overwrite=yes"}), "--overwrite takes no value");
}

TEST(Options, Letters) {
  EXPECT_EQ(parse({"a", "b", "-j4"}).jobs(), 4U);
  EXPECT_EQ(parse({"a", "b", "-j", "4"}).jobs(), 4U);
  EXPECT_EQ(parse({"a", "b", "-j=4"}).jobs(), 4U);
  EXPECT_EQ(parse({"a", "b"}).jobs(), 0U);
  EXPECT_EQ(refusal_of({"a", "b", "-x"}), "unknown option '-x'");
}

TEST(Options, Repeated) {
  const Arguments arguments =
      parse({"a", "b", "--include", "x", "--include=y", "--to=tar", "--to", "tfrecord"});
  EXPECT_EQ(arguments.values("--include"), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(arguments.value("--to"), "tfrecord");
}

TEST(Options, TwoDashesEndTheOptions) {
  const Arguments arguments = parse({"--json", "--", "--to", "-h"});
  EXPECT_EQ(arguments.positional(0), "--to");
  EXPECT_EQ(arguments.positional(1), "-h");
  EXPECT_FALSE(arguments.asks_help());
  EXPECT_EQ(parse({"-", "b"}).positional(0), "-");
}

TEST(Options, HelpNeedsNothingElse) {
  EXPECT_TRUE(parse({"--help"}).asks_help());
  EXPECT_TRUE(parse({"a", "-h", "--nonsense"}).asks_help());
}

TEST(Options, MissingAndSurplus) {
  EXPECT_EQ(refusal_of({}), "SRC is missing");
  EXPECT_EQ(refusal_of({"a"}), "DST is missing");
  EXPECT_EQ(refusal_of({"a", "b", "c\n"}), "'c\\n' is one argument too many");
  EXPECT_EQ(refusal_of({"a", "b", "--to"}), "--to needs a value: --to FORMAT");
  EXPECT_EQ(refusal_of({"a", "b", "--to", "--json"}), "--to needs a value: --to FORMAT");
}

TEST(Options, AnyNumberOfTheLast) {
  constexpr std::array<std::string_view, 2> kNames = {"SRC", "[PLACE...]"};
  constexpr std::array kTwo = {Option{"--to", "FORMAT", ""}, kJsonOption};
  const auto parse_any = [&](const std::vector<std::string>& words) {
    return Arguments(kNames, kTwo, words).rest();
  };
  EXPECT_TRUE(parse_any({"a"}).empty());
  EXPECT_EQ(parse_any({"a", "b", "--to", "x", "c", "--", "-d"}),
            (std::vector<std::string>{"b", "c", "-d"}));
  EXPECT_EQ(refusal([&] { parse_any({"--json"}); }), "SRC is missing");
  constexpr std::array<std::string_view, 1> kOnly = {"[PLACE...]"};
  EXPECT_TRUE(Arguments(kOnly, kTwo, std::vector<std::string>()).rest().empty());
}

TEST(Options, Suggestions) {
  EXPECT_EQ(refusal_of({"--shard-sze", "1G"}),
            "unknown option '--shard-sze', did you mean '--shard-size'?");
  EXPECT_EQ(refusal_of({"--overwrit=1"}),
            "unknown option '--overwrit', did you mean '--overwrite'?");
  EXPECT_EQ(refusal_of({"--qqqqqqqq"}), "unknown option '--qqqqqqqq'");
}

TEST(Options, Numbers) {
  const auto number = [](const char* text, uint64_t least) {
    return parse({"a", "b", "--to", text}).number("--to", least);
  };
  EXPECT_EQ(number("0", 0), 0U);
  EXPECT_EQ(number("18446744073709551615", 0), UINT64_MAX);
  EXPECT_EQ(parse({"a", "b"}).number("--to", 0), std::nullopt);
  for (const char* text : {"0", "-1", "1.5", "1k", "x", " 1", "18446744073709551616"}) {
    EXPECT_EQ(refusal([&] { number(text, 1); }),
              "--to '" + std::string(text) + "': should be a whole number, 1 or more");
  }
  EXPECT_EQ(refusal([&] {
              parse({"a", "b", "-j9999"}).jobs();
            }),
            "--jobs '9999': 4096 is the most that makes sense");
}

TEST(Options, Sizes) {
  EXPECT_EQ(parse({"a", "b", "--shard-size", "1G"}).size("--shard-size"), 1'000'000'000U);
  for (const char* text : {"0", "1X", "-1G"}) {
    EXPECT_EQ(
        refusal([&] {
          parse({"a", "b", "--shard-size", text}).size("--shard-size");
        }),
        "--shard-size '" + std::string(text) + "': should be a size such as 512M, 1G or 1.5GiB");
  }
}

TEST(Options, Choices) {
  constexpr std::array<std::string_view, 2> kFormats = {"tar", "tfrecord"};
  EXPECT_EQ(parse({"a", "b", "--to", "tar"}).choice("--to", kFormats), "tar");
  EXPECT_EQ(parse({"a", "b"}).choice("--to", kFormats), std::nullopt);
  EXPECT_EQ(refusal([&] {
              parse({"a", "b", "--to", "tfrecrd"}).choice("--to", kFormats);
            }),
            "--to 'tfrecrd': should be one of tar, tfrecord, did you mean 'tfrecord'?");
}

TEST(Options, Description) {
  constexpr std::array kTwo = {Option{"--to", "FORMAT", "first line\nsecond line"}, kHelpOption};
  EXPECT_EQ(describe_options(kTwo),
            "      --to FORMAT           first line\n"
            "                            second line\n"
            "  -h, --help                show this page\n");
}

}  // namespace
}  // namespace stoker
