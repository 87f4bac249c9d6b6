// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stoker {

/// Nodes, cores, memory and GPUs of a job, over all of its nodes. What is not known is nothing.
struct SlurmResources {
  std::optional<uint64_t> nodes, cores, memory, gpus;
};

/// One step of a job: the batch script, or what one srun started.
struct SlurmStep {
  std::string id;  // "batch", "extern", "0"
  std::string state, nodes, peak_node;
  std::optional<int64_t> start, end;
  std::optional<double> elapsed_s, cpu_s;
  std::optional<uint64_t> cores, tasks, node_count;
  std::optional<uint64_t> task_memory;  // the peak of the task that had most
  std::optional<uint64_t> memory;       // the sum of the peaks of all tasks
  std::optional<uint64_t> read, written;
  std::optional<double> gpu_busy;  // percent, summed over GPUs where Slurm does
  std::optional<uint64_t> gpu_memory;
};

/// One job, one task of an array, or one component of a heterogeneous job.
struct SlurmJob {
  std::string id;      // "123", "123_4", "123_[5-9]", "123+1"
  std::string raw_id;  // the number it has whatever it belongs to
  std::string name, user, partition, work_dir;
  std::string state, reason;
  std::string nodes;
  int exit_status = 0, signal = 0;
  std::optional<int64_t> submit, eligible, start, end;
  std::optional<double> elapsed_s;
  std::optional<double> limit_s;  // infinity: none
  // How memory was asked for, which sbatch takes in one way only: --mem, or --mem-per-cpu.
  bool memory_basis_known = false, memory_per_core = false;
  std::optional<uint32_t> cancelled_by;  // number of the user
  SlurmResources asked, granted;
  std::vector<SlurmStep> steps;

  uint64_t granted_memory_per_node() const {
    return granted.memory.value_or(0) / std::max<uint64_t>(granted.nodes.value_or(1), 1);
  }
  /// The number all tasks or components share: "123".
  std::string family() const { return id.substr(0, id.find_first_of("_+")); }
  bool pending() const { return state == "PENDING" || state == "REQUEUED"; }
  bool active() const {
    return state == "RUNNING" || state == "COMPLETING" || state == "SUSPENDED" ||
           state == "CONFIGURING" || state == "STOPPED" || state == "SIGNALING" ||
           state == "STAGE_OUT" || state == "RESIZING";
  }
};

}  // namespace stoker
