// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "os/command_output.h"
#include "slurm/records.h"

namespace stoker {

/// Runs one of Slurm's commands; tests put recorded answers here.
using SlurmRunner = std::function<CommandAnswer(const std::vector<std::string>& words)>;
/// The real one: dates as seconds, lists in full, whatever the user's environment says.
SlurmRunner slurm_runner();

struct SlurmJobs {
  std::vector<SlurmJob> jobs;
  std::vector<std::string> notes;  // what could not be asked, and what that means
};

/// The parts of a job: itself, the tasks of an array, or the components of a heterogeneous job.
/// `id` is "123", "123_4" or "123+1". Throws Error(usage) for what is no number of a job,
/// Error(unsupported) where there is no Slurm, Error(not_found) where nobody knows the job.
SlurmJobs query_job(const std::string& id, const SlurmRunner& run);

/// The jobs of a user since `days` days ago, steps included.
SlurmJobs query_user_jobs(const std::string& user, unsigned days, const SlurmRunner& run);

}  // namespace stoker
