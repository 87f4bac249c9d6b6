// SPDX-License-Identifier: Apache-2.0
#include "slurm/text.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stoker {
namespace {

TEST(SlurmText, Sizes) {
  EXPECT_EQ(slurm_size(0), "0 B");
  EXPECT_EQ(slurm_size(uint64_t{4} << 30), "4 GiB");
  EXPECT_EQ(slurm_size(uint64_t{300} << 20), "300 MiB");
  EXPECT_EQ(slurm_size(1'524'178'944), "1.42 GiB");
  EXPECT_EQ(slurm_size(uint64_t{1023} << 20), "1023 MiB");
  EXPECT_EQ(slurm_size((uint64_t{64} << 30) + (uint64_t{600} << 20)), "64.6 GiB");
}

TEST(SlurmText, TasksOfAnArray) {
  EXPECT_EQ(array_tasks("123"), 1U);
  EXPECT_EQ(array_tasks("123_4"), 1U);
  EXPECT_EQ(array_tasks("123_[1-10]"), 10U);
  EXPECT_EQ(array_tasks("123_[5-9,12%2]"), 6U);
  EXPECT_EQ(array_tasks("123_[1-9:2]"), 5U);
  EXPECT_EQ(array_tasks("123_[7]"), 1U);
  EXPECT_EQ(array_tasks("123_[x"), 1U);
}

TEST(SlurmText, Durations) {
  EXPECT_DOUBLE_EQ(*parse_slurm_duration("00:13.338"), 13.338);
  EXPECT_DOUBLE_EQ(*parse_slurm_duration("01:02:03"), 3723);
  EXPECT_DOUBLE_EQ(*parse_slurm_duration("2-00:00:01"), 172801);
  EXPECT_TRUE(std::isinf(*parse_slurm_duration("UNLIMITED")));
  for (const char* text : {"", "Partition_Limit", "INVALID", "12", "1:2:3:4", "-1:00", "a:b", "1-",
                           "::", "1e9:00", "99999999999999999999x:00"}) {
    EXPECT_FALSE(parse_slurm_duration(text)) << text;
  }
}

TEST(SlurmText, Memory) {
  EXPECT_EQ(parse_slurm_memory("11206656"), 11206656);
  EXPECT_EQ(parse_slurm_memory("4096M"), uint64_t{4} << 30);
  EXPECT_EQ(parse_slurm_memory("1.5G"), uint64_t{3} << 29);
  EXPECT_EQ(parse_slurm_memory("4000Mc"), uint64_t{4000} << 20);
  EXPECT_EQ(parse_slurm_memory("2Gn"), uint64_t{2} << 30);
  for (const char* text :
       {"", "c", "M", "-1", "x", "?", "1e3", "16E16", "nan", "9999999999999999999E"}) {
    EXPECT_FALSE(parse_slurm_memory(text)) << text;
  }
}

TEST(SlurmText, Times) {
  EXPECT_EQ(parse_slurm_time("1794809126"), 1794809126);
  EXPECT_TRUE(parse_slurm_time("2021-03-01T10:00:00"));
  EXPECT_EQ(*parse_slurm_time("2021-03-01T10:01:00") - *parse_slurm_time("2021-03-01T10:00:00"),
            60);
  for (const char* text : {"", "Unknown", "None", "N/A", "2021-03-01", "99999999999999999999"}) {
    EXPECT_FALSE(parse_slurm_time(text)) << text;
  }
}

TEST(SlurmText, Nodes) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(expand_nodes("n1"), Names{"n1"});
  EXPECT_EQ(expand_nodes("n[1-3,07],gpu1"), (Names{"n1", "n2", "n3", "n07", "gpu1"}));
  EXPECT_EQ(expand_nodes("n[08-10]-ib"), (Names{"n08-ib", "n09-ib", "n10-ib"}));
  EXPECT_EQ(expand_nodes("None assigned"), Names{});
  EXPECT_EQ(expand_nodes(""), Names{});
  EXPECT_EQ(expand_nodes("n[1-999999999]", 10).size(), 10U);
  EXPECT_EQ(expand_nodes("n[0-18446744073709551615]", 10).size(), 10U);
  EXPECT_EQ(expand_nodes("n[1-"), Names{});
  EXPECT_EQ(expand_nodes("n[x-y],,a"), Names{"a"});
}

TEST(SlurmText, DurationsForSbatch) {
  EXPECT_EQ(slurm_duration(300), "00:05:00");
  EXPECT_EQ(slurm_duration(86400 + 7200 + 60), "1-02:01:00");
}

TEST(SlurmText, RowsOfAnotherWidthAreLeftOut) {
  const SlurmTable table(
      "A\x1f"
      "B\n1\x1f"
      "2\n3\n4\x1f"
      "5\x1f"
      "6\n\n7\x1f"
      "8\n");
  EXPECT_EQ(table.rows(), 2U);
  EXPECT_EQ(table.left_out(), 2U);
  EXPECT_EQ(table.cell(1, "B"), "8");
  EXPECT_EQ(table.cell(1, "C"), "");
  EXPECT_EQ(SlurmTable("").rows(), 0U);
}

}  // namespace
}  // namespace stoker
