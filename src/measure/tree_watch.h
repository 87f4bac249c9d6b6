// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "os/gpu_use.h"
#include "os/process_tree.h"
#include "results/column_file.h"
#include "results/run.h"

namespace stoker {

/// Looks at a process tree again and again, and writes down what it uses. Costs a small share of a
/// core, however many processes there are: it looks more rarely then.
class TreeWatch {
 public:
  /// Processes below `root`; with `below_us` that is this process, which adopts what loses its
  /// parent, and does not count itself.
  TreeWatch(pid_t root, bool below_us, double interval_s, const RunInfo& info);

  /// When the next look is due, on the clock of seconds_since_begin().
  double next_look_s() const { return next_s_; }
  double seconds_since_begin() const;
  /// Looks now. The sample also goes to the run directory.
  const ResourceSample& look();

  /// What was used from begin to end; `largest` is the memory of the largest process, as the kernel
  /// noted it when it ended, or 0.
  void finish(RunInfo& info, uint64_t largest);
  const std::vector<GpuUse>& gpus() const { return gpus_; }
  const std::vector<ProcessUse>& processes() const { return processes_; }

 private:
  void measure_memory(ResourceSample& sample, bool exact);
  void add_ended(ResourceSample& sample) const;
  void take_processes(bool exact);

  pid_t root_;
  bool below_us_;
  double interval_s_;
  std::string visible_gpus_;
  int64_t begin_ns_;
  double next_s_ = 0, next_exact_s_ = 0, next_gpu_s_ = 0;
  double exact_share_ = 1;  // of resident memory that is left when what is shared counts once
  double cost_s_ = 0;
  double ended_cpu_before_ = 0;
  uint64_t ended_switches_before_ = 0;
  std::set<pid_t> not_ours_;             // alive before: left by a run before this one
  std::optional<ResourceSample> first_;  // of a process that ran before we came
  ChildrenIo ended_io_before_;
  ProcessTree tree_;
  GpuWatch gpu_watch_;
  std::vector<GpuUse> gpus_;
  std::vector<ProcessUse> processes_;
  ResourceSample last_, peak_;
  std::unique_ptr<ColumnWriter> writer_;
  double next_flush_s_ = 0;
};

}  // namespace stoker
