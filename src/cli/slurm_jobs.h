// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "cli/options.h"
#include "os/site.h"
#include "slurm/batch_script.h"

namespace stoker {

// What commands that run as jobs of Slurm share: pack, scale, time.

inline constexpr Option kSlurmOption{"--slurm", "", "do it in jobs of Slurm, and wait for them"};
inline constexpr Option kPrintOption{"--print", "",
                                     "with --slurm: show the job scripts, submit nothing"};
inline constexpr Option kNoWaitOption{"--no-wait", "", "with --slurm: submit, and return at once"};
inline constexpr Option kPartitionOption{"--partition", "NAME", "with --slurm: where jobs run"};
inline constexpr Option kAccountOption{"--account", "NAME", "with --slurm: who pays"};
inline constexpr Option kTimeOption{"--time", "TIME", "with --slurm: their limit, as in 4:00:00"};
inline constexpr Option kSbatchOption{"--sbatch", "OPTION",
                                      "with --slurm: any other option of sbatch; may be repeated"};

/// A job to be submitted, under the name of its script.
struct PlannedJob {
  BatchScript script;
  std::string after;  // "afterok" or "afterany" of all before it; empty: at once
};

/// The directory that scripts and logs of this command go to; not made yet.
std::string new_jobs_directory(std::string_view command);

/// What the options say, and otherwise the site's file. `log` of the script is in `directory`.
BatchScript script_for(const Arguments& arguments, std::string_view name,
                       const std::string& directory, const SiteJobs& defaults = read_site().slurm);

/// The command line that was typed, without what concerns Slurm and output: words of the same
/// program with the same options.
std::vector<std::string> same_command(std::string_view command, const Arguments& arguments,
                                      std::span<const Option> options);

/// The body of a job that leaves what a command prints, and its exit status, where the one who
/// waits for the jobs finds them.
std::string body_with_result(const std::string& directory, const std::vector<std::string>& words);

void print_scripts(const std::string& directory, const std::vector<PlannedJob>& jobs);
/// Returns their numbers. Where one is refused, those before it are cancelled.
std::vector<std::string> submit_jobs(const std::string& directory,
                                     const std::vector<PlannedJob>& jobs);

/// Numbers of the jobs of a command, those included that jobs of it have submitted since.
std::vector<std::string> jobs_of(const std::string& directory);

/// Shows the scripts, or submits them and waits until the last one has left its result, which is
/// printed. `look` is called now and then to count what is done. Returns the exit status.
int run_jobs(std::string_view command, const std::string& directory,
             const std::vector<PlannedJob>& jobs, const Arguments& arguments, Progress& progress,
             const std::function<void()>& look);

}  // namespace stoker
