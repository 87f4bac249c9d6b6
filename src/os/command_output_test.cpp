// SPDX-License-Identifier: Apache-2.0
#include "os/command_output.h"

#include <gtest/gtest.h>

#include <chrono>

namespace stoker {
namespace {

TEST(CommandOutput, TextOfAProgram) {
  EXPECT_EQ(command_output({"printf", "%s|", "a b", "$HOME"}, 10), "a b|$HOME|");
}

TEST(CommandOutput, NothingOfOneThatIsNotThereOrFails) {
  EXPECT_EQ(command_output({"no-such-program-here"}, 10), std::nullopt);
  EXPECT_EQ(command_output({"false"}, 10), std::nullopt);
}

TEST(CommandOutput, OneThatHangsIsKilled) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(command_output({"sleep", "600"}, 0.05), std::nullopt);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(300));
}

}  // namespace
}  // namespace stoker
