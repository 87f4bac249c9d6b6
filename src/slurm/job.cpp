// SPDX-License-Identifier: Apache-2.0
#include "slurm/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "os/node.h"
#include "os/safe_directory.h"

namespace stoker {
namespace {

template <typename T>
void keep_most(std::optional<T>& most, const std::optional<T>& value) {
  if (value && (!most || *most < *value)) most = value;
}

template <typename T>
void add(std::optional<T>& sum, const std::optional<T>& value) {
  if (value) sum = sum.value_or(T{}) + *value;
}

double wasted_by(const SlurmJob& job, const JobUse& use) {
  constexpr double kMemoryOfACore = 4e9;
  const double elapsed = job.elapsed_s.value_or(0);
  double idle = 0;
  if (use.cores && job.granted.cores) {
    idle = std::max(idle, static_cast<double>(*job.granted.cores) - *use.cores);
  }
  if (use.memory && job.granted.memory && *use.memory < *job.granted.memory) {
    idle = std::max(idle, static_cast<double>(*job.granted.memory - *use.memory) / kMemoryOfACore);
  }
  return elapsed * idle;
}

JobPart part_of(SlurmJob job) {
  JobPart part{std::move(job), {}, {}, 0};
  part.use = use_of(part.job);
  part.findings = job_findings(part.job, part.use);
  part.wasted = wasted_by(part.job, part.use);
  return part;
}

/// Sums of what adds up, the most of what must be there for every one.
JobUse use_of_all(const std::vector<JobPart>& parts, bool at_once) {
  JobUse all;
  double core_seconds = 0;
  for (const JobPart& part : parts) {
    const JobUse& use = part.use;
    add(all.cpu_s, use.cpu_s);
    add(all.read, use.read);
    add(all.written, use.written);
    if (at_once) {
      add(all.cores, use.cores);
      add(all.memory, use.memory);
    } else {
      keep_most(all.cores, use.cores);
      keep_most(all.memory, use.memory);
      keep_most(all.memory_share, use.memory_share);
    }
    keep_most(all.memory_per_node, use.memory_per_node);
    keep_most(all.gpu_busy, use.gpu_busy);
    keep_most(all.gpu_memory, use.gpu_memory);
    keep_most(all.time_share, use.time_share);
    keep_most(all.wait_s, use.wait_s);
    all.out_of_memory |= use.out_of_memory;
    all.out_of_time |= use.out_of_time;
    if (use.cpu_s) {
      core_seconds +=
          part.job.elapsed_s.value_or(0) * static_cast<double>(part.job.granted.cores.value_or(0));
    }
  }
  if (all.cpu_s && core_seconds > 0) all.cpu_share = *all.cpu_s / core_seconds;
  return all;
}

/// All tasks have the same lines in one script: it must do for the one that needs most.
std::vector<JobFinding> array_findings(const std::vector<JobPart>& tasks) {
  const auto started = std::find_if(tasks.begin(), tasks.end(),
                                    [](const JobPart& part) { return !part.job.pending(); });
  if (started == tasks.end()) return {};
  SlurmJob neediest = started->job;
  neediest.elapsed_s.reset();
  // How long a task takes, those show that ended well; all of them must have.
  const bool completed = std::all_of(tasks.begin(), tasks.end(), [](const JobPart& part) {
    return part.job.state == "COMPLETED";
  });
  const bool going_on = std::any_of(tasks.begin(), tasks.end(), [](const JobPart& part) {
    return part.job.active() || part.job.pending();
  });
  neediest.state = completed ? "COMPLETED" : (going_on ? "RUNNING" : kMixed);
  JobUse most = use_of_all(tasks, false);
  most.cpu_share.reset();
  for (const JobPart& part : tasks) {
    keep_most(neediest.elapsed_s, part.job.elapsed_s);
    keep_most(most.cpu_share, part.use.cpu_share);
  }
  return job_findings(neediest, most);
}

/// Directories in which runs of a job are looked for: what another user has put there, saying that
/// it is of this job, is left out.
std::vector<std::string> directories_of_runs(const SlurmJob& job) {
  std::vector<std::string> places;
  if (!job.work_dir.empty()) places.push_back(job.work_dir + "/stoker-runs");
  // Where they go if others could replace them there.
  if (job.user == user_name()) places.push_back(state_directory() + "/stoker/runs");
  std::vector<std::string> directories;
  for (const std::string& place : places) {
    try {
      const SafeDirectory directory(place);
      for (const DirectoryEntry& entry : directory.list()) {
        const auto owner = directory.ownership(entry.name);
        if (owner && has_name(owner->user, job.user))
          directories.push_back(place + "/" + entry.name);
      }
    } catch (const Error&) {  // not there, or not for us
    }
  }
  return directories;
}

std::vector<JobRun> runs_of(const SlurmJob& job, const std::string& given) {
  const std::vector<std::string> directories =
      given.empty() ? directories_of_runs(job) : std::vector<std::string>{given};
  std::vector<JobRun> runs;
  for (const std::string& directory : directories) {
    try {
      if (given.empty() && read_run_info(directory).slurm_job != job.raw_id) continue;
      Run run = read_run(directory);
      RunSummary summary = summarise(run);
      runs.push_back({std::move(run), std::move(summary)});
    } catch (const Error&) {
      if (!given.empty()) throw;  // something else lies there
    }
  }
  return runs;
}

/// Where Slurm counts the page cache as memory of a job, advice from its peak would be wrong.
void note_page_cache(JobReport& report, const SlurmRunner& run) {
  if (!report.use.memory) return;
  const CommandAnswer answer = run({"scontrol", "show", "config"});
  if (answer.status != 0 || answer.output.find("jobacct_gather/cgroup") == std::string::npos ||
      answer.output.find("no_file_cache") != std::string::npos) {
    return;
  }
  report.notes.emplace_back(
      "this site measures memory by cgroup: the peak contains the page cache of files that were "
      "read, "
      "which a job does not need; `stoker time` and `stoker job --watch` tell them apart");
}

}  // namespace

JobReport job(const std::string& id, const std::string& run_directory, const SlurmRunner& run) {
  SlurmJobs found = query_job(id, run);
  JobReport report;
  report.notes = std::move(found.notes);
  for (SlurmJob& each : found.jobs) report.parts.push_back(part_of(std::move(each)));
  const std::string& first = report.parts.front().job.id;
  const bool several = id.find_first_of("_+") == std::string::npos;
  report.kind = "job";
  if (several && first.find('_') != std::string::npos) report.kind = "array";
  if (several && first.find('+') != std::string::npos) report.kind = "heterogeneous";
  if (report.kind == "array") {
    report.use = use_of_all(report.parts, false);
    report.findings = array_findings(report.parts);
  } else if (report.kind == "heterogeneous") {
    report.use = use_of_all(report.parts, true);
    for (const JobPart& part : report.parts) {
      for (const JobFinding& finding : part.findings) {
        report.findings.push_back(
            {fmt::format("component {}: {}", part.job.id.substr(part.job.id.find('+')),
                         finding.what),
             finding.line});
      }
    }
  } else {
    report.use = report.parts.front().use;
    report.findings = report.parts.front().findings;
  }
  note_page_cache(report, run);
  for (const JobPart& part : report.parts) {
    for (JobRun& each : runs_of(part.job, run_directory)) report.runs.push_back(std::move(each));
    if (!run_directory.empty()) break;
  }
  return report;
}

JobReport user_jobs(const std::string& user, unsigned days, const SlurmRunner& run) {
  SlurmJobs found = query_user_jobs(user, days, run);
  JobReport report;
  report.kind = "list";
  report.notes = std::move(found.notes);
  for (SlurmJob& each : found.jobs) report.parts.push_back(part_of(std::move(each)));
  // Of those that waste nothing, as far as is known, first what can still be changed.
  const auto rank = [](const JobPart& part) {
    return std::pair(-part.wasted, !part.job.active() && !part.job.pending());
  };
  std::stable_sort(
      report.parts.begin(), report.parts.end(),
      [&](const JobPart& one, const JobPart& other) { return rank(one) < rank(other); });
  return report;
}

}  // namespace stoker
