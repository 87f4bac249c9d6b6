// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/parallel.h"
#include "os/process_tree.h"
#include "probe/measurements.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

/// The number behind "Name:", which /proc gives in kB.
uint64_t kilobytes_of(const std::string& file, const std::string& name) {
  std::ifstream lines(file);
  std::string line;
  while (std::getline(lines, line)) {
    const size_t at = line.find(name + ":");
    if (at == std::string::npos) continue;
    return 1024 * std::strtoull(line.c_str() + at + name.size() + 1, nullptr, 10);
  }
  return 0;
}

std::string cpu_name(const std::string& root) {
  std::ifstream lines(root + "/proc/cpuinfo");
  std::string line;
  while (std::getline(lines, line)) {
    if (!line.starts_with("model name") && !line.starts_with("CPU implementer")) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

void find_numa(Machine& machine, const std::string& root) {
  const std::string nodes = root + "/sys/devices/system/node";
  std::error_code failed;
  for (fs::directory_iterator at(nodes, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with("node") || name.size() == 4 || name[4] < '0' || name[4] > '9') continue;
    NumaNode node;
    node.number = static_cast<unsigned>(std::strtoul(name.c_str() + 4, nullptr, 10));
    std::ifstream(at->path() / "cpulist") >> node.cpus;
    node.memory_bytes = kilobytes_of(at->path() / "meminfo", "MemTotal");
    machine.numa.push_back(node);
  }
  std::sort(machine.numa.begin(), machine.numa.end(),
            [](const NumaNode& a, const NumaNode& b) { return a.number < b.number; });
  if (machine.numa.empty()) {
    machine.notes.emplace_back("NUMA nodes unknown: no /sys/devices/system/node");
  }
}

}  // namespace

void find_topology(Machine& machine, const std::string& root) {
  machine.cpu = cpu_name(root);
  machine.machine_cores = static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  cpu_set_t set;
  machine.affinity_cores = ::sched_getaffinity(0, sizeof(set), &set) == 0
                               ? static_cast<unsigned>(CPU_COUNT(&set))
                               : machine.machine_cores;
  std::ifstream groups(root + "/proc/self/cgroup");
  if (!groups) machine.notes.emplace_back("no cgroup: limits of cores and memory unknown");
  machine.cgroup_cores = cgroup_cores(root + "/sys/fs/cgroup", groups);
  if (const char* granted = std::getenv("SLURM_CPUS_PER_TASK")) {
    machine.slurm_cores = static_cast<unsigned>(std::strtoul(granted, nullptr, 10));
  }
  machine.cores = usable_cores();
  machine.memory_bytes = kilobytes_of(root + "/proc/meminfo", "MemTotal");
  machine.memory_available_bytes = kilobytes_of(root + "/proc/meminfo", "MemAvailable");
  if (machine.memory_bytes == 0) {
    machine.notes.emplace_back("no /proc/meminfo: memory as sysconf() has it");
    machine.memory_bytes = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                           static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    machine.memory_available_bytes = machine.memory_bytes / 2;
  }
  if (const uint64_t limit = cgroup_memory(root).limit; limit > 0) {
    machine.memory_limit_bytes = limit;
  }
  if (machine.memory_limit_bytes) {
    machine.memory_available_bytes =
        std::min(machine.memory_available_bytes, *machine.memory_limit_bytes);
  }
  find_numa(machine, root);
}

}  // namespace stoker
