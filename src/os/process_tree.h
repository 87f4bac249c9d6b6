// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stoker {

/// What one process has used so far, and what it holds. Sums over children count those that it has
/// waited for: nothing of a short life is lost.
struct ProcessUse {
  pid_t pid = 0;
  pid_t parent = 0;
  std::string name;
  uint32_t threads = 0;
  double cpu_s = 0;  // with its children that ended
  // Resident memory; none counted twice where the kernel was asked to divide what is shared.
  uint64_t anonymous = 0, shared = 0, mapped = 0;
  uint64_t read_calls_bytes = 0;  // from wherever: page cache, pipes, disk
  uint64_t read_disk_bytes = 0;
  uint64_t write_disk_bytes = 0;
  uint64_t context_switches = 0;
};

/// Looks at processes through /proc. What it may not see, or what is gone, is left out.
class ProcessTree {
 public:
  /// `proc` is another directory in tests.
  explicit ProcessTree(std::string proc = "/proc");

  /// `root` and its descendants, in no order. With `exact_memory` what processes share is divided
  /// between them, which costs milliseconds for each gigabyte.
  std::vector<ProcessUse> look(pid_t root, bool exact_memory) const;

 private:
  bool look_at(pid_t pid, bool exact_memory, ProcessUse& use) const;
  void add_children(pid_t pid, std::vector<pid_t>& found) const;
  std::vector<pid_t> all_descendants(pid_t root) const;

  std::string proc_;
  double ticks_;
  bool lists_children_;
};

/// Whether the process that had this number at `since_ns` of the monotonic clock still runs. One
/// that has ended and that nobody has waited for does not.
bool process_runs(pid_t pid, int64_t since_ns);

/// Bytes that ended children of this process have read, from what the kernel adds up when they are
/// waited for.
struct ChildrenIo {
  uint64_t read_calls_bytes = 0, read_disk_bytes = 0, write_disk_bytes = 0;
};
ChildrenIo io_of_ended_children();

/// What the cgroup of this process and those around it say, of version 1 or 2; 0 where none sets a
/// limit or says nothing.
struct CgroupMemory {
  uint64_t limit = 0;
  uint64_t page_cache = 0;
};
/// `root` is what lies above /proc and /sys in tests.
CgroupMemory cgroup_memory(const std::string& root = "");

}  // namespace stoker
