// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "os/scratch_directory.h"
#include "probe/measurements.h"

namespace stoker {
namespace fs = std::filesystem;
namespace {

void put(const std::string& root, const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(root + path).parent_path());
  std::ofstream(root + path) << text;
}

TEST(Topology, FromFiles) {
  const ScratchDirectory scratch;
  const std::string& root = scratch.path();
  put(root, "/proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU 9000\n");
  put(root, "/proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    600 kB\n");
  put(root, "/proc/self/cgroup", "0::/job/step\n");
  put(root, "/sys/fs/cgroup/job/step/memory.max", "max\n");
  put(root, "/sys/fs/cgroup/job/memory.max", "409600\n");
  put(root, "/sys/fs/cgroup/job/cpu.max", "150000 100000\n");
  for (const char* node : {"10", "2"}) {
    const std::string folder = std::string("/sys/devices/system/node/node") + node;
    put(root, folder + "/cpulist", std::string(node) + "-99\n");
    put(root, folder + "/meminfo", "Node 2 MemTotal:       7 kB\nNode 2 MemFree: 1 kB\n");
  }
  put(root, "/sys/devices/system/node/possible", "0\n");
  Machine machine;
  find_topology(machine, root);
  EXPECT_EQ(machine.cpu, "Some CPU 9000");
  EXPECT_EQ(machine.memory_bytes, 1000U * 1024);
  EXPECT_EQ(machine.memory_limit_bytes, 409600U);
  EXPECT_EQ(machine.memory_available_bytes, 409600U);
  EXPECT_EQ(machine.cgroup_cores, 1.5);
  ASSERT_EQ(machine.numa.size(), 2U);
  EXPECT_EQ(machine.numa[0].number, 2U);
  EXPECT_EQ(machine.numa[1].cpus, "10-99");
  EXPECT_EQ(machine.numa[1].memory_bytes, 7U * 1024);
  EXPECT_TRUE(machine.notes.empty());
}

TEST(Topology, LimitsOfVersion1) {
  const ScratchDirectory scratch;
  put(scratch.path(), "/proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/a\n");
  put(scratch.path(), "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "8192\n");
  put(scratch.path(), "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Machine machine;
  find_topology(machine, scratch.path());
  EXPECT_EQ(machine.memory_limit_bytes, 8192U);
  put(scratch.path(), "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
  Machine unlimited;
  find_topology(unlimited, scratch.path());
  EXPECT_EQ(unlimited.memory_limit_bytes, std::nullopt);
}

TEST(Topology, WithoutSysAndProc) {
  const ScratchDirectory scratch;
  Machine machine;
  find_topology(machine, scratch.path());
  EXPECT_EQ(machine.cpu, "unknown");
  EXPECT_GT(machine.memory_bytes, 0U);
  EXPECT_GE(machine.cores, 1U);
  EXPECT_TRUE(machine.numa.empty());
  EXPECT_EQ(machine.cgroup_cores, 0);
  EXPECT_EQ(machine.notes.size(), 3U);
}

}  // namespace
}  // namespace stoker
