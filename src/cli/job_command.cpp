// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/job_report.h"
#include "cli/output.h"
#include "os/node.h"
#include "results/document.h"
#include "slurm/job.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, 1> kPositionals = {"[JOBID...]"};

constexpr std::array kOptions = {
    Option{"--days", "N", "without a JOBID: the jobs of so many days (default: 7)"},
    Option{"--user", "NAME", "without a JOBID: the jobs of this user (default: you)"},
    Option{"--run", "DIR",
           "a run of stoker time in the job (default: looked for in\n"
           "stoker-runs/ of the directory the job was submitted from)"},
    kJsonOption,
    kHelpOption,
};

int run_job(const Arguments& arguments, Progress&) {
  constexpr uint64_t kMostDays = 3650;
  const bool json = arguments.flag(kJsonOption.name);
  const Style style = Style::of_stdout();
  if (arguments.rest().size() > 1) {
    throw Error(ErrorKind::usage, "one JOBID, please: a job, a task of an array, or none");
  }
  if (arguments.rest().empty()) {
    const auto days =
        static_cast<unsigned>(std::min(arguments.number("--days", 1).value_or(7), kMostDays));
    const std::string user = arguments.value("--user").value_or(user_name());
    const JobReport report = user_jobs(user, days, slurm_runner());
    print(json ? to_text(user_jobs_document(report)) : user_jobs_report(report, style));
    return kExitDone;
  }
  const JobReport report =
      job(arguments.rest().front(), arguments.value("--run").value_or(""), slurm_runner());
  print(json ? to_text(job_document(report)) : job_report(report, style));
  return kExitDone;
}

}  // namespace

constinit const Command kJobCommand = {
    .name = "job",
    .summary = "a Slurm job: what it asked for, what it used, which lines to change",
    .positionals = kPositionals,
    .description =
        "Says what the Slurm job JOBID (123, 123_4, 123+1) asked for, was granted and used, "
        "running\n"
        "or finished, by sacct, squeue and sstat; and the #SBATCH lines to change. Without a "
        "JOBID:\n"
        "your jobs, one line each, the most wasteful first. A run of `stoker time` inside of the "
        "job\n"
        "brings its samples/s and stalls.\n",
    .options = kOptions,
    .examples =
        "  stoker job 123456\n"
        "  stoker job 123456_7 --json\n"
        "  stoker job --days 30\n",
    .run = run_job,
};

}  // namespace stoker
