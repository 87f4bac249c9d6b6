// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "measure/run_summary.h"
#include "results/run.h"
#include "slurm/query.h"
#include "slurm/records.h"

namespace stoker {

/// What a job used, over all of its nodes, and which share of what it was granted. The formulas
/// are seff's. What is not known is nothing.
struct JobUse {
  std::optional<double> cpu_s, cores;       // time on cores; cores busy on average
  std::optional<uint64_t> memory;           // the step that needed most: its tasks' peaks
  std::optional<uint64_t> memory_per_node;  // what --mem must allow: no less than was needed
  std::optional<uint64_t> read, written;    // by all steps
  std::optional<double> gpu_busy;           // share of the GPUs granted, where tracked
  std::optional<uint64_t> gpu_memory;
  std::optional<double> cpu_share, memory_share, time_share;
  std::optional<double> wait_s;                     // in the queue, since it could have started
  bool out_of_memory = false, out_of_time = false;  // a limit ended it, or a step of it
};

struct JobFinding {
  std::string what;
  std::string line;  // "#SBATCH --mem=5G"; empty where no line would change it
};

struct JobPart {
  SlurmJob job;
  JobUse use;
  std::vector<JobFinding> findings;
  double wasted = 0;  // core seconds that were granted and idle; 4 GB of memory count as a core
};

/// A run of `stoker time` inside of the job.
struct JobRun {
  Run run;
  RunSummary summary;
};

struct JobReport {
  std::string kind;  // "job", "array", "heterogeneous"
  std::vector<JobPart> parts;
  JobUse use;  // of all parts
  std::vector<JobFinding> findings;
  std::vector<std::string> notes;
  std::vector<JobRun> runs;
};

/// The state of an array whose tasks have all ended, some well and some not.
inline constexpr const char* kMixed = "MIXED";

JobUse use_of(const SlurmJob& job);
/// What to change in the job script, most wasteful first.
std::vector<JobFinding> job_findings(const SlurmJob& job, const JobUse& use);

/// Everything about one job. Looks for runs of `stoker time` in `run_directory`, or where it is
/// empty in stoker-runs/ of the directory that the job was submitted from.
JobReport job(const std::string& id, const std::string& run_directory, const SlurmRunner& run);
/// A user's jobs of the last `days` days, the most wasteful first.
JobReport user_jobs(const std::string& user, unsigned days, const SlurmRunner& run);

/// What --json prints.
Json job_document(const JobReport& report);
Json user_jobs_document(const JobReport& report);
/// Of several jobs: what job_document() made of each, and why there is none of others.
Json jobs_document(const std::vector<Json>& documents, const std::vector<std::string>& failures);

}  // namespace stoker
