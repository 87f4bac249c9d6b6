// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/output.h"
#include "slurm/job.h"

namespace stoker {

/// What `stoker job JOBID` prints.
std::string job_report(const JobReport& report, const Style& style);
/// What `stoker job` prints: one line for each job.
std::string user_jobs_report(const JobReport& report, const Style& style);

}  // namespace stoker
