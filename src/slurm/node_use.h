// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

/// What a job uses on one of its nodes, seen there.
struct NodeUse {
  struct Process {
    int64_t pid = 0;
    std::string name;
    double cpu_s = 0;
    uint64_t memory = 0, threads = 0;
  };
  std::string node;
  double time_s = 0;  // of a clock that nobody sets
  double cpu_s = 0;
  uint64_t memory = 0;                 // of its processes; the page cache is none of it
  std::optional<uint64_t> page_cache;  // where a cgroup of the job tells
  std::optional<uint64_t> limit;       // of the cgroup
  uint64_t processes = 0;
  std::vector<Process> largest;  // those that used most of the cores
};

/// On a node of the job: its processes, known by their environment, this one left out.
NodeUse look_at_node(const std::string& job);
/// The page cache and limit in the job's own cgroup, of version 1 or 2. `root` is what lies above
/// /proc and /sys in tests.
void add_job_cgroup(const std::string& job, NodeUse& use, const std::string& root = "");

/// One line of JSON, and back; nothing where the line is something else.
std::string to_line(const NodeUse& use);
std::optional<NodeUse> node_use_from(std::string_view line);

/// A program that looks at every node of a running job, as one step of it that shares what the job
/// has (srun --overlap), and says what it sees every few seconds.
class NodeWatch {
 public:
  NodeWatch(const std::string& job, size_t nodes, unsigned every_s);
  ~NodeWatch();
  NodeWatch(const NodeWatch&) = delete;
  NodeWatch& operator=(const NodeWatch&) = delete;

  /// What came since the last call, after waiting at most `seconds` for something to come.
  std::vector<NodeUse> next(double seconds);
  /// False once it has ended: the job is over, or the site does not allow it.
  bool runs() const { return output_ >= 0; }
  /// The first thing that srun complained about; empty where it did not.
  std::string errors();

 private:
  pid_t child_ = -1;
  int output_ = -1, errors_ = -1;
  std::string complaints_;
  std::string begun_;  // of a line
};

}  // namespace stoker
