// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace stoker {
namespace {

class Cgroups : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = root_ + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  double cores(const std::string& groups) const {
    std::istringstream own(groups);
    return cgroup_cores(root_, own);
  }

  const std::string root_ = testing::TempDir() + "/stoker_cgroups_" + std::to_string(::getpid());
};

TEST_F(Cgroups, Version2TakesTheSmallestOnTheWayUp) {
  write("cpu.max", "max 100000\n");
  write("slurm/cpu.max", "800000 100000\n");
  write("slurm/job_7/cpu.max", "250000 100000\n");
  write("slurm/job_7/step_0/cpu.max", "max 100000\n");
  EXPECT_EQ(cores("0::/slurm/job_7/step_0\n"), 2.5);
  EXPECT_EQ(cores("0::/slurm\n"), 8);
  EXPECT_EQ(cores("0::/\n"), 0);
  EXPECT_EQ(cores("0::/elsewhere\n"), 0);
  EXPECT_EQ(cores(""), 0);
}

TEST_F(Cgroups, Version1) {
  write("cpu/cpu.cfs_quota_us", "-1\n");
  write("cpu/cpu.cfs_period_us", "100000\n");
  write("cpu/slurm/cpu.cfs_quota_us", "400000\n");
  write("cpu/slurm/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores("5:memory:/other\n4:cpu,cpuacct:/slurm\n1:name=systemd:/\n"), 4);
  EXPECT_EQ(cores("4:cpu,cpuacct:/\n"), 0);
  EXPECT_EQ(cores("4:cpuset:/slurm\n"), 0);
}

TEST(UsableCores, SlurmMayGrantFewer) {
  const unsigned before = usable_cores();
  ::setenv("SLURM_CPUS_PER_TASK", "1", 1);
  EXPECT_EQ(usable_cores(), 1U);
  ::setenv("SLURM_CPUS_PER_TASK", "100000", 1);
  EXPECT_EQ(usable_cores(), before);
  ::setenv("SLURM_CPUS_PER_TASK", "nonsense", 1);
  EXPECT_EQ(usable_cores(), before);
  ::unsetenv("SLURM_CPUS_PER_TASK");
}

TEST(ThreadShares, GrowWhileOthersFinish) {
  ThreadShares shares(8, 20);
  EXPECT_EQ(shares.now(), 1U);
  for (int i = 0; i < 16; ++i) shares.leave();
  EXPECT_EQ(shares.now(), 2U);
  for (int i = 0; i < 3; ++i) shares.leave();
  EXPECT_EQ(shares.now(), 8U);
  shares.leave();
  EXPECT_EQ(shares.now(), 8U);
  EXPECT_EQ(ThreadShares(8, 3).now(), 2U);
  EXPECT_EQ(ThreadShares(1, 0).now(), 1U);
}

}  // namespace
}  // namespace stoker
