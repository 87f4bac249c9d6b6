// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "slurm/job.h"
#include "slurm/text.h"

namespace stoker {
namespace {

constexpr uint64_t kGibi = uint64_t{1} << 30;
// What is shorter than this says little about what a job needs.
constexpr double kWorthJudging = 10;

/// A fifth more than the peak, at least 1 GiB more than nothing, in whole GiB.
uint64_t enough_memory(uint64_t peak) {
  return static_cast<uint64_t>(std::ceil(1.2 * static_cast<double>(peak) / kGibi));
}

std::string memory_line(uint64_t gibi) { return fmt::format("#SBATCH --mem={}G", gibi); }

uint64_t granted_per_node(const SlurmJob& job) {
  return job.granted.memory.value_or(0) / std::max<uint64_t>(job.granted.nodes.value_or(1), 1);
}

void judge_memory(const SlurmJob& job, const JobUse& use, std::vector<JobFinding>& findings) {
  const uint64_t granted = granted_per_node(job);
  if (granted == 0) return;
  const char* per_node = job.granted.nodes.value_or(1) > 1 ? " on each node" : "";
  if (job.state == "OUT_OF_MEMORY") {
    // How much it would have needed, nobody has seen.
    const uint64_t more = std::max(enough_memory(granted + granted / 4), granted / kGibi + 1);
    findings.push_back(
        {fmt::format("asked {}{}, which was not enough", format_bytes(granted), per_node),
         memory_line(more)});
    return;
  }
  if (!use.memory_per_node) return;
  const uint64_t peak = *use.memory_per_node;
  const uint64_t enough = std::max<uint64_t>(enough_memory(peak), 1);
  const char* instead = job.memory_per_core ? " (in place of --mem-per-cpu)" : "";
  constexpr double kTight = 0.95;
  if (static_cast<double>(peak) > kTight * static_cast<double>(granted)) {
    if (enough * kGibi <= granted) return;
    findings.push_back({fmt::format("asked {}{}, peak {}: next to nothing to spare{}",
                                    format_bytes(granted), per_node, format_bytes(peak), instead),
                        memory_line(enough)});
  } else if (enough * kGibi <= granted - granted / 4 &&
             job.elapsed_s.value_or(0) >= kWorthJudging) {
    findings.push_back({fmt::format("asked {}{}, peak {}{}", format_bytes(granted), per_node,
                                    format_bytes(peak), instead),
                        memory_line(enough)});
  }
}

/// Of the step that worked most; the batch script is one task.
uint64_t tasks_of(const SlurmJob& job) {
  const auto most = std::max_element(job.steps.begin(), job.steps.end(),
                                     [](const SlurmStep& one, const SlurmStep& other) {
                                       return one.cpu_s.value_or(0) < other.cpu_s.value_or(0);
                                     });
  return most == job.steps.end() ? 1 : std::max<uint64_t>(most->tasks.value_or(1), 1);
}

void judge_cores(const SlurmJob& job, const JobUse& use, std::vector<JobFinding>& findings) {
  constexpr double kMuch = 0.75;
  if (!use.cores || !use.cpu_share || *use.cpu_share > kMuch) return;
  const uint64_t tasks = tasks_of(job);
  const uint64_t granted = *job.granted.cores / tasks;
  // A core that is busy for a seventh of the time is none to ask for.
  const auto needed = static_cast<uint64_t>(
      std::max(1.0, std::ceil(*use.cores / static_cast<double>(tasks) - 0.15)));
  if (needed >= granted) return;
  findings.push_back({fmt::format("asked {} cores{}, {:.1f} busy on average", *job.granted.cores,
                                  tasks > 1 ? fmt::format(" for {} tasks", tasks) : "", *use.cores),
                      fmt::format("#SBATCH --cpus-per-task={}", needed)});
}

void judge_time(const SlurmJob& job, std::vector<JobFinding>& findings) {
  if (!job.limit_s || std::isinf(*job.limit_s)) return;
  constexpr uint64_t kMinute = 60;
  const auto line = [](double seconds) {
    const auto minutes = static_cast<uint64_t>(std::ceil(seconds / kMinute));
    return "#SBATCH --time=" + slurm_duration(minutes * kMinute);
  };
  if (job.state == "TIMEOUT") {
    findings.push_back(
        {fmt::format("its limit of {} ended it: how long it needs is not known; twice that "
                     "is a guess, a checkpoint to go on from is better",
                     format_duration(*job.limit_s)),
         line(2 * *job.limit_s)});
    return;
  }
  // What failed or was cancelled has not shown how long it takes.
  if (job.state != "COMPLETED" || !job.elapsed_s || *job.elapsed_s < kWorthJudging) return;
  const double enough = std::max(1.5 * *job.elapsed_s, 5.0 * kMinute);
  constexpr double kWorthASlot = 600;  // that the scheduler could use
  if (enough > *job.limit_s / 2 || *job.limit_s - enough < kWorthASlot) return;
  findings.push_back({fmt::format("asked {}, took {}: a shorter job starts earlier",
                                  format_duration(*job.limit_s), format_duration(*job.elapsed_s)),
                      line(enough)});
}

void judge_gpus(const SlurmJob& job, const JobUse& use, std::vector<JobFinding>& findings) {
  const uint64_t gpus = job.granted.gpus.value_or(0);
  constexpr double kIdle = 0.3;
  if (gpus == 0 || !use.gpu_busy || *use.gpu_busy > kIdle) return;
  const uint64_t nodes = std::max<uint64_t>(job.granted.nodes.value_or(1), 1);
  const auto busy = std::max(1.0, std::ceil(*use.gpu_busy * static_cast<double>(gpus)));
  const auto each = static_cast<uint64_t>(std::ceil(busy / static_cast<double>(nodes)));
  findings.push_back(
      {fmt::format("{} GPUs, busy {:.0f} % of the time; `stoker time` says what they wait "
                   "for",
                   gpus, 100 * *use.gpu_busy),
       each * nodes < gpus ? fmt::format("#SBATCH --gres=gpu:{}", each) : ""});
}

}  // namespace

std::vector<JobFinding> job_findings(const SlurmJob& job, const JobUse& use) {
  std::vector<JobFinding> findings;
  if (job.pending()) return findings;
  judge_gpus(job, use, findings);
  judge_memory(job, use, findings);
  if (job.elapsed_s.value_or(0) >= kWorthJudging) judge_cores(job, use, findings);
  judge_time(job, findings);
  return findings;
}

}  // namespace stoker
