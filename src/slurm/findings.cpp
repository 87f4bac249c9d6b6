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

/// As many as the largest step had; the batch script is one, and what Slurm itself runs is none.
uint64_t tasks_of(const SlurmJob& job) {
  uint64_t tasks = 1;
  for (const SlurmStep& step : job.steps) {
    if (step.id != "extern") tasks = std::max(tasks, step.tasks.value_or(1));
  }
  return tasks;
}

/// What a running job has used says nothing yet about what it will need less of.
const char* so_far(const SlurmJob& job) { return job.active() ? " so far" : ""; }

uint64_t cores_per_node(const SlurmJob& job) {
  const uint64_t nodes = std::max<uint64_t>(job.granted.nodes.value_or(1), 1);
  return std::max<uint64_t>(job.granted.cores.value_or(1) / nodes, 1);
}

/// How many cores to ask for.
struct Cores {
  std::string options;    // "--ntasks=1 --cpus-per-task=2"; empty: as many as now
  uint64_t per_node = 1;  // that a node then has for the job
};

Cores cores_to_ask_for(const SlurmJob& job, const JobUse& use) {
  constexpr double kMuch = 0.75;
  const uint64_t nodes = std::max<uint64_t>(job.granted.nodes.value_or(1), 1);
  Cores cores;
  cores.per_node = cores_per_node(job);
  if (!use.cores || !use.cpu_share || *use.cpu_share > kMuch ||
      job.elapsed_s.value_or(0) < kWorthJudging) {
    return cores;
  }
  const uint64_t tasks = tasks_of(job);
  // A core that is busy for a seventh of the time is none to ask for.
  const auto needed = static_cast<uint64_t>(
      std::max(1.0, std::ceil(*use.cores / static_cast<double>(tasks) - 0.15)));
  if (needed >= *job.granted.cores / tasks) return cores;
  // Cores may have been asked for as tasks (-n 4): then only both numbers say how many. Fewer tasks
  // than nodes would be fewer nodes.
  const bool say_tasks = tasks >= nodes;
  cores.options = fmt::format("{}--cpus-per-task={}",
                              say_tasks ? fmt::format("--ntasks={} ", tasks) : "", needed);
  cores.per_node = std::max<uint64_t>(needed * tasks / nodes, 1);
  return cores;
}

/// The line for so much memory on each node. sbatch takes no --mem where --mem-per-cpu was asked
/// for, and that counts for the cores which are asked for with it.
std::string memory_line(const SlurmJob& job, const Cores& cores, uint64_t gibi) {
  if (!job.memory_per_core) return fmt::format("#SBATCH --mem={}G", gibi);
  const uint64_t mebi = (gibi * 1024 + cores.per_node - 1) / cores.per_node;
  return fmt::format("#SBATCH {}{}--mem-per-cpu={}M", cores.options,
                     cores.options.empty() ? "" : " ", mebi);
}

/// Where nobody says whether it was --mem or --mem-per-cpu.
const char* instead(const SlurmJob& job) {
  return job.memory_basis_known ? "" : " (in place of --mem-per-cpu, if the script has that)";
}

void judge_memory(const SlurmJob& job, const JobUse& use, const Cores& cores,
                  std::vector<JobFinding>& findings) {
  const uint64_t granted = job.granted_memory_per_node();
  if (granted == 0) return;
  const std::string asked = fmt::format("asked {}{}", slurm_size(granted),
                                        job.granted.nodes.value_or(1) > 1 ? " on each node" : "");
  if (use.out_of_memory) {
    // How much it would have needed, nobody has seen. More than it had been granted it can only
    // have had where the kernel does not enforce that: then Slurm has killed it, or somebody else.
    const uint64_t peak = use.memory_per_node.value_or(0);
    const std::string end =
        peak > granted ? fmt::format("probably ended it, at {}", slurm_size(peak)) : "ended it";
    const uint64_t enough =
        std::max(enough_memory(std::max(granted + granted / 4, peak)), granted / kGibi + 1);
    findings.push_back(
        {fmt::format("{}, which was not enough: that {}{}", asked, end, instead(job)),
         memory_line(job, cores, enough)});
    return;
  }
  if (!use.memory_per_node) return;
  const uint64_t peak = *use.memory_per_node;
  const uint64_t enough = enough_memory(peak);
  const std::string seen = fmt::format("{}, peak {}{}", asked, slurm_size(peak), so_far(job));
  constexpr double kTight = 0.95;
  if (static_cast<double>(peak) > kTight * static_cast<double>(granted)) {
    if (enough * kGibi <= granted) return;
    const bool ended_so = job.state != "COMPLETED" && job.state != kMixed && !job.active();
    findings.push_back(
        {fmt::format("{}: {}{}", seen,
                     ended_so ? "probably what ended it" : "next to nothing to spare",
                     instead(job)),
         memory_line(job, cores, enough)});
  } else if (enough * kGibi <= granted - granted / 4 &&
             job.elapsed_s.value_or(0) >= kWorthJudging) {
    findings.push_back({seen + (job.active() ? "" : instead(job)),
                        job.active() ? "" : memory_line(job, cores, enough)});
  }
}

void judge_cores(const SlurmJob& job, const JobUse& use, const Cores& cores,
                 std::vector<JobFinding>& findings) {
  if (cores.options.empty()) return;
  const uint64_t tasks = tasks_of(job);
  std::string line = "#SBATCH " + cores.options;
  // With fewer cores there would be less memory, too.
  if (job.memory_per_core) {
    const uint64_t granted = job.granted_memory_per_node();
    const uint64_t gibi = use.memory_per_node && !use.out_of_memory
                              ? enough_memory(*use.memory_per_node)
                              : (granted + kGibi - 1) / kGibi;
    line = memory_line(job, cores, gibi);
  }
  for (const JobFinding& finding : findings) {
    // Both at once, with as much memory as that says.
    if (job.memory_per_core && finding.line.find("--mem-per-cpu=") != std::string::npos) {
      line = finding.line;
    }
  }
  findings.push_back(
      {fmt::format("asked {} cores{}, {:.1f} busy on average{}", *job.granted.cores,
                   tasks > 1 ? fmt::format(" for {} tasks", tasks) : "", *use.cores, so_far(job)),
       job.active() ? "" : line});
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
      {fmt::format("{} GPUs, busy {:.0f} % of the time{}; `stoker time` says what they wait "
                   "for",
                   gpus, 100 * *use.gpu_busy, so_far(job)),
       each * nodes < gpus && !job.active() ? fmt::format("#SBATCH --gres=gpu:{}", each) : ""});
}

}  // namespace

std::vector<JobFinding> job_findings(const SlurmJob& job, const JobUse& use) {
  std::vector<JobFinding> findings;
  if (job.pending()) return findings;
  judge_gpus(job, use, findings);
  // One that runs has not shown yet how many it needs.
  const Cores cores = cores_to_ask_for(job, use);
  judge_memory(job, use, job.active() ? Cores{"", cores_per_node(job)} : cores, findings);
  judge_cores(job, use, cores, findings);
  judge_time(job, use, findings);
  return findings;
}

}  // namespace stoker
