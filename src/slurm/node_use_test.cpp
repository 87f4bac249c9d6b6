// SPDX-License-Identifier: Apache-2.0
#include "slurm/node_use.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace stoker {
namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

class SlurmNode : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }
  std::filesystem::path root_ = testing::TempDir() + "/slurm-node";
};

TEST_F(SlurmNode, PageCacheOfTheSecondVersion) {
  write(root_ / "proc/self/cgroup",
        "0::/system.slice/slurmstepd.scope/job_12/step_3/user/task_0\n");
  const auto group = root_ / "sys/fs/cgroup/system.slice/slurmstepd.scope/job_12";
  write(group / "memory.stat", "anon 1000\nfile 5000\nshmem 2000\n");
  write(group / "memory.max", "9000\n");
  NodeUse use;
  add_job_cgroup("12", use, root_);
  EXPECT_EQ(use.page_cache, 3000U);  // shared memory is no cache
  EXPECT_EQ(use.limit, 9000U);
}

TEST_F(SlurmNode, PageCacheOfTheFirstVersion) {
  write(root_ / "proc/self/cgroup",
        "9:cpu:/slurm/uid_1/job_12/step_3\n8:memory:/slurm/uid_1/job_12/step_3\n0::/\n");
  const auto group = root_ / "sys/fs/cgroup/memory/slurm/uid_1/job_12";
  write(group / "memory.stat", "cache 7\ntotal_cache 600\ntotal_rss 5\n");
  NodeUse use;
  add_job_cgroup("12", use, root_);
  EXPECT_EQ(use.page_cache, 600U);
  EXPECT_FALSE(use.limit);
}

TEST_F(SlurmNode, NothingWithoutACgroupOfTheJob) {
  write(root_ / "proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_123/step_3\n");
  NodeUse use;
  add_job_cgroup("12", use, root_);
  EXPECT_FALSE(use.page_cache);
}

TEST_F(SlurmNode, LinesThereAndBack) {
  NodeUse use;
  use.node = "n1";
  use.cpu_s = 1.5;
  use.page_cache = 7;
  use.largest.push_back({42, "a\nb\xff", 1, 2, 3});
  const std::string line = to_line(use);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto back = node_use_from(line);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->page_cache, 7U);
  EXPECT_EQ(back->largest.at(0).pid, 42);
  for (const char* bad : {"", "srun: error: x", "{}", "[1]", "{\"node\": 3}"}) {
    EXPECT_FALSE(node_use_from(bad)) << bad;
  }
}

}  // namespace
}  // namespace stoker
