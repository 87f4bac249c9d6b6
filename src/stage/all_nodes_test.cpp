// SPDX-License-Identifier: Apache-2.0
#include "stage/all_nodes.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

// As srun of Slurm 22.05 prints it for twelve tasks: the numbers are as wide as the largest.
TEST(AllNodes, LinesOfTenTasksAndMore) {
  const auto tasks = lines_by_task(" 0: {\n10: {\n 0:   \"a\": 1\n10: }\n 0: }\n");
  ASSERT_EQ(tasks.size(), 2U);
  EXPECT_EQ(tasks.at(0), "{\n  \"a\": 1\n}\n");
  EXPECT_EQ(tasks.at(10), "{\n}\n");
}

TEST(AllNodes, WhatIsNoLineOfATask) {
  EXPECT_TRUE(lines_by_task("").empty());
  EXPECT_TRUE(lines_by_task("srun: error\n\n 1:x\n2\n: \n99999999999: x").empty());
}

}  // namespace
}  // namespace stoker
