// SPDX-License-Identifier: Apache-2.0
#include "base/inner_path.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace stoker {
namespace {

using namespace std::string_view_literals;

TEST(InnerPath, UnsafeNames) {
  for (const auto path :
       {""sv, "/a"sv, ".."sv, "../a"sv, "a/.."sv, "a/../b"sv, "./../a"sv, "a\0b"sv}) {
    EXPECT_NE(unsafe_name(path), "") << path;
    EXPECT_NE(unsafe_path(path), "") << path;
  }
  for (const auto path :
       {"a"sv, "a..b"sv, "..a/b"sv, "a../b"sv, "a/...jpg"sv, "a\nb"sv, "\xff"sv}) {
    EXPECT_EQ(unsafe_name(path), "") << path;
    EXPECT_EQ(unsafe_path(path), "") << path;
  }
}

TEST(InnerPath, PathsHaveNoEmptyComponents) {
  for (const auto path : {"a//b"sv, "a/"sv, "./a"sv, "."sv, "a/./b"sv, "a/."sv}) {
    EXPECT_NE(unsafe_path(path), "") << path;
  }
  EXPECT_EQ(unsafe_path("a/b/.c/d"), "");
}

TEST(InnerPath, SaysWhichFileNamesWhat) {
  EXPECT_EQ(inner_path("train/a.tar", "x"), "train/a.tar");
  EXPECT_EQ(inner_name("a.seg", "x"), "a.seg");
  const auto message = [](auto check, const std::string& name) -> std::string {
    try {
      (void)check(name, "/d/.stoker/manifest.json");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::corrupt);
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message(inner_path, "../x").find("/d/.stoker/manifest.json: names '../x'"),
            std::string::npos);
  EXPECT_NE(message(inner_name, "a/b.seg"), "");
  EXPECT_NE(message(inner_name, "/b.seg"), "");
  EXPECT_NE(message(inner_name, ""), "");
}

}  // namespace
}  // namespace stoker
