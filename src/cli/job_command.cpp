// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/job_report.h"
#include "cli/job_watch.h"
#include "cli/output.h"
#include "os/node.h"
#include "results/document.h"
#include "slurm/job.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, 1> kPositionals = {"[JOBID...]"};

constexpr std::array kOptions = {
    Option{"--watch", "", "show it until it ends, with what runs on each of its nodes"},
    Option{"--every", "N", "with --watch: seconds between two looks (default: 2)"},
    Option{"--days", "N", "without a JOBID: the jobs of so many days (default: 7)"},
    Option{"--user", "NAME", "without a JOBID: the jobs of this user (default: you)"},
    Option{"--run", "DIR",
           "a run of stoker time in the job (default: looked for in\n"
           "stoker-runs/ of the directory the job was submitted from)"},
    Option{"--here", "",
           "on a node of a job: what its processes use there, a line of JSON\n"
           "for each look; what --watch runs on the nodes"},
    kJsonOption,
    kHelpOption,
};

/// One after the other; one that is not known hides none of the others.
int show_several(const Arguments& arguments, bool json, const Style& style) {
  if (arguments.value("--run")) {
    throw Error(ErrorKind::usage, "--run: is a run of one job, and several are asked for");
  }
  std::vector<Json> documents;
  std::vector<std::string> failures, shown;
  for (const std::string& id : arguments.rest()) {
    if (std::find(shown.begin(), shown.end(), id) != shown.end()) continue;
    shown.push_back(id);
    try {
      const JobReport report = job(id, "", slurm_runner());
      if (json) {
        documents.push_back(job_document(report));
      } else {
        print((shown.size() > 1 ? "\n" : "") + job_report(report, style));
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::not_found) throw;
      failures.emplace_back(error.what());
      print_error(fmt::format("stoker: {}\n", error.what()));
    }
  }
  if (json) print(to_text(jobs_document(documents, failures)));
  return failures.empty() ? kExitDone : kExitFailed;
}

int run_job(const Arguments& arguments, Progress& progress) {
  constexpr uint64_t kMostDays = 3650, kMostEvery = 3600;
  const bool json = arguments.flag(kJsonOption.name);
  const Style style = Style::of_stdout();
  const auto every =
      static_cast<unsigned>(std::min(arguments.number("--every", 1).value_or(2), kMostEvery));
  if (arguments.flag("--here")) return report_node(every, progress);
  if (arguments.flag("--watch")) {
    if (arguments.rest().size() != 1 || json) {
      throw Error(ErrorKind::usage, json ? "--watch and --json: only one of them"
                                         : "--watch: one job, as in stoker job --watch 123");
    }
    return watch_job(arguments.rest().front(), every, progress);
  }
  if (arguments.rest().empty()) {
    const auto days =
        static_cast<unsigned>(std::min(arguments.number("--days", 1).value_or(7), kMostDays));
    const std::string user = arguments.value("--user").value_or(user_name());
    const JobReport report = user_jobs(user, days, slurm_runner());
    print(json ? to_text(user_jobs_document(report)) : user_jobs_report(report, style));
    return kExitDone;
  }
  if (arguments.rest().size() > 1) return show_several(arguments, json, style);
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
        "Says what each Slurm job JOBID (123, 123_4, 123+1) asked for, was granted and used, "
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
        "  stoker job --watch 123456\n"
        "  stoker job --days 30\n",
    .run = run_job,
};

}  // namespace stoker
