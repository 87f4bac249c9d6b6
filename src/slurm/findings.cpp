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

/// In whole GiB. Slurm looks now and then, so the real peak was higher, and no two runs are alike:
/// half as much again. Beyond 8 GiB that would keep others waiting: 4 GiB more, or a fifth.
uint64_t enough_memory(uint64_t peak) {
  constexpr uint64_t kMostHalf = 4 * kGibi;
  const uint64_t more = std::max(peak / 5, std::min(peak / 2, kMostHalf));
  return std::max<uint64_t>(1, (peak + more + kGibi - 1) / kGibi);
}

std::string memory_line(uint64_t gibi) { return fmt::format("#SBATCH --mem={}G", gibi); }

void judge_memory(const SlurmJob& job, const JobUse& use, std::vector<JobFinding>& findings) {
  const uint64_t granted = job.granted_memory_per_node();
  if (granted == 0) return;
  const char* per_node = job.granted.nodes.value_or(1) > 1 ? " on each node" : "";
  if (use.out_of_memory) {
    // How much it would have needed, nobody has seen. More than it had been granted it can only
    // have had where the kernel does not enforce that: then Slurm has killed it, or somebody else.
    const uint64_t peak = use.memory_per_node.value_or(0);
    const std::string end =
        peak > granted ? fmt::format("probably ended it, at {}", format_bytes(peak)) : "ended it";
    findings.push_back({fmt::format("asked {}{}, which was not enough: that {}",
                                    format_bytes(granted), per_node, end),
                        memory_line(std::max(enough_memory(std::max(granted + granted / 4, peak)),
                                             granted / kGibi + 1))});
    return;
  }
  if (!use.memory_per_node) return;
  const uint64_t peak = *use.memory_per_node;
  const uint64_t enough = enough_memory(peak);
  const char* instead = job.memory_per_core ? " (in place of --mem-per-cpu)" : "";
  constexpr double kTight = 0.95;
  if (static_cast<double>(peak) > kTight * static_cast<double>(granted)) {
    if (enough * kGibi <= granted) return;
    const bool ended_so = job.state != "COMPLETED" && !job.active();
    findings.push_back(
        {fmt::format("asked {}{}, peak {}: {}{}", format_bytes(granted), per_node,
                     format_bytes(peak),
                     ended_so ? "probably what ended it" : "next to nothing to spare", instead),
         memory_line(enough)});
  } else if (enough * kGibi <= granted - granted / 4 &&
             job.elapsed_s.value_or(0) >= kWorthJudging) {
    findings.push_back({fmt::format("asked {}{}, peak {}{}", format_bytes(granted), per_node,
                                    format_bytes(peak), instead),
                        memory_line(enough)});
  }
}

/// As many as the largest step had; the batch script is one, and what Slurm itself runs is none.
uint64_t tasks_of(const SlurmJob& job) {
  uint64_t tasks = 1;
  for (const SlurmStep& step : job.steps) {
    if (step.id != "extern") tasks = std::max(tasks, step.tasks.value_or(1));
  }
  return tasks;
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
  // Cores may have been asked for as tasks (-n 4): then only both numbers say how many. Fewer tasks
  // than nodes would be fewer nodes.
  const bool say_tasks = tasks >= job.granted.nodes.value_or(1);
  findings.push_back({fmt::format("asked {} cores{}, {:.1f} busy on average", *job.granted.cores,
                                  tasks > 1 ? fmt::format(" for {} tasks", tasks) : "", *use.cores),
                      fmt::format("#SBATCH {}--cpus-per-task={}",
                                  say_tasks ? fmt::format("--ntasks={} ", tasks) : "", needed)});
}

void judge_time(const SlurmJob& job, const JobUse& use, std::vector<JobFinding>& findings) {
  if (!job.limit_s || std::isinf(*job.limit_s)) return;
  constexpr uint64_t kMinute = 60;
  const auto line = [](double seconds) {
    const auto minutes = static_cast<uint64_t>(std::ceil(seconds / kMinute));
    return "#SBATCH --time=" + slurm_duration(minutes * kMinute);
  };
  if (use.out_of_time) {
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
  judge_time(job, use, findings);
  return findings;
}

}  // namespace stoker
