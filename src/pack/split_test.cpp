// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/error.h"
#include "pack/pack.h"

namespace stoker {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_split(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "accepted";
}

TEST(Split, NamesAndShares) {
  EXPECT_EQ(parse_split("train=0.9,val=0.1"), (Shares{{"train", 0.9}, {"val", 0.1}}));
  EXPECT_EQ(parse_split("all=1"), (Shares{{"all", 1.0}}));
  EXPECT_EQ(parse_split("a=0.3333333,b=0.3333333,c=0.3333333").size(), 3U);
}

TEST(Split, RefusesWhatMakesNoSense) {
  const auto refused = [](const std::string& text) {
    return refusal(text).substr(text.size() + 12);
  };
  EXPECT_EQ(refused("train=90,val=10"), "the shares sum to 100, not 1; perhaps train=0.9,val=0.1");
  EXPECT_EQ(refused("a=0.5,b=0.4"), "the shares sum to 0.9, not 1; perhaps a=0.5556,b=0.4444");
  EXPECT_EQ(refused("a=0.5,a=0.5"), "'a' is named twice");
  EXPECT_EQ(refused(""), "should look like train=0.9,val=0.1");
  EXPECT_EQ(refused("train"), "should look like train=0.9,val=0.1");
  EXPECT_EQ(refused("a=1,"), "should look like train=0.9,val=0.1");
  EXPECT_EQ(refused("=1"), "the name '' is empty, so it cannot be a directory");
  EXPECT_EQ(refused("a/b=1"), "the name 'a/b' contains a slash, so it cannot be a directory");
  EXPECT_EQ(refused("..=1"), "the name '..' begins with a dot, so it cannot be a directory");
  for (const char* share : {"0", "-1", "nan", "inf", "x", "", "0.5x"}) {
    EXPECT_EQ(refused("a=" + std::string(share) + ",b=1"),
              "the share of 'a' should be a number above 0");
  }
}

}  // namespace
}  // namespace stoker
