// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "os/node.h"
#include "slurm/job.h"

namespace stoker {
namespace {

template <typename T>
void add(std::optional<T>& sum, const std::optional<T>& value) {
  if (value) sum = sum.value_or(T{}) + *value;
}

/// The most that one node may have held for a step. Slurm says the sum over all tasks, and which
/// task had most: on no node is more than the sum, or than that task as often as there are tasks.
uint64_t node_memory(const SlurmStep& step) {
  const uint64_t nodes = std::max<uint64_t>(step.node_count.value_or(1), 1);
  const uint64_t tasks = std::max<uint64_t>(step.tasks.value_or(1), 1);
  const uint64_t sum = step.memory.value_or(0);
  if (nodes == 1 || !step.task_memory) return sum;
  return std::min(sum, *step.task_memory * ((tasks + nodes - 1) / nodes));
}

/// Steps that run side by side need their memory side by side.
std::optional<uint64_t> memory_per_node(const SlurmJob& job) {
  std::optional<uint64_t> most;
  for (const SlurmStep& at : job.steps) {
    if (!at.memory) continue;
    uint64_t sum = 0;
    for (const SlurmStep& other : job.steps) {
      const bool there = !at.start || !other.start ||
                         (*other.start <= *at.start && (!other.end || *other.end > *at.start));
      if (&other == &at || there) sum += node_memory(other);
    }
    most = std::max(most.value_or(0), sum);
  }
  return most;
}

/// By the kernel, which Slurm calls OUT_OF_MEMORY, or by Slurm itself, which cancels the step and
/// leaves the job FAILED, or COMPLETED where its script went on.
bool ran_out_of_memory(const SlurmJob& job, const JobUse& use) {
  const auto is = [&](const char* state) {
    return std::any_of(job.steps.begin(), job.steps.end(),
                       [&](const SlurmStep& step) { return step.state == state; });
  };
  if (job.state == "OUT_OF_MEMORY" || is("OUT_OF_MEMORY")) return true;
  const uint64_t granted = job.granted_memory_per_node();
  return granted > 0 && use.memory_per_node.value_or(0) > granted && is("CANCELLED") &&
         job.state != "CANCELLED";
}

std::optional<double> share_of(std::optional<double> part, double whole) {
  if (!part || !(whole > 0) || std::isinf(whole)) return std::nullopt;
  return *part / whole;
}

}  // namespace

JobUse use_of(const SlurmJob& job) {
  JobUse use;
  for (const SlurmStep& step : job.steps) {
    add(use.cpu_s, step.cpu_s);
    add(use.read, step.read);
    add(use.written, step.written);
    if (step.memory) use.memory = std::max(use.memory.value_or(0), *step.memory);
    if (step.gpu_busy) use.gpu_busy = std::max(use.gpu_busy.value_or(0), *step.gpu_busy);
    if (step.gpu_memory) use.gpu_memory = std::max(use.gpu_memory.value_or(0), *step.gpu_memory);
  }
  // Of a job that runs, sacct says zero until a step has ended.
  const bool told = std::any_of(job.steps.begin(), job.steps.end(),
                                [](const SlurmStep& step) { return step.memory.has_value(); });
  if (!told) use.cpu_s.reset();
  use.memory_per_node = memory_per_node(job);
  use.out_of_memory = ran_out_of_memory(job, use);
  use.out_of_time = job.state == "TIMEOUT";
  const double elapsed = job.elapsed_s.value_or(0);
  const auto cores = static_cast<double>(job.granted.cores.value_or(0));
  use.cores = share_of(use.cpu_s, elapsed);
  use.cpu_share = share_of(use.cpu_s, elapsed * cores);
  if (use.memory && job.granted.memory) {
    use.memory_share =
        share_of(static_cast<double>(*use.memory), static_cast<double>(*job.granted.memory));
  }
  use.time_share = share_of(job.elapsed_s, job.limit_s.value_or(0));
  if (use.gpu_busy && job.granted.gpus.value_or(0) > 0) {
    *use.gpu_busy /= 100 * static_cast<double>(*job.granted.gpus);
  } else {
    use.gpu_busy.reset();
  }
  const auto since = job.eligible ? job.eligible : job.submit;
  const int64_t begun = job.pending() ? time_of_day_ns() / 1'000'000'000 : job.start.value_or(0);
  if (since && begun > 0) use.wait_s = static_cast<double>(std::max<int64_t>(begun - *since, 0));
  return use;
}

}  // namespace stoker
