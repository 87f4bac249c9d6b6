// SPDX-License-Identifier: Apache-2.0
#include "cli/slurm_failures.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "os/node.h"
#include "os/output_file.h"
#include "slurm/job.h"
#include "slurm/words.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

std::string log_of(const std::string& number, const std::string& directory) {
  std::error_code failed;
  for (fs::directory_iterator entry(directory, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if (name.ends_with(fmt::format("-{}.log", number))) return entry->path().string();
  }
  return "";
}

/// The last thing that the program itself said; empty where it said nothing.
std::string last_words(const std::string& log) {
  constexpr uint64_t kMostLog = uint64_t{1} << 30;
  constexpr std::string_view kOurs = "stoker: ";
  std::string text;
  try {
    text = "\n" + read_file(log, kMostLog);
  } catch (const Error&) {
    return "";
  }
  const size_t at = text.rfind("\n" + std::string(kOurs));
  if (at == std::string::npos) return "";
  const size_t begin = at + 1 + kOurs.size();
  return printable(std::string_view(text).substr(begin, text.find('\n', begin) - begin));
}

/// Parts of a job as Slurm knows them; none where it does not answer.
std::vector<SlurmJob> parts_of(const std::string& number) {
  try {
    return query_job(number, slurm_runner()).jobs;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    return {};
  }
}

bool has_ended(const SlurmJob& job) { return !job.active() && !job.pending(); }

JobFailure failure_of(const SlurmJob& job, const std::string& directory) {
  const auto because = [&](std::string why) {
    return JobFailure{std::move(why), job.exit_status, true};
  };
  if (job.state == "TIMEOUT" && job.limit_s) {
    return because(fmt::format("job {} reached its time limit of {}: ask for more with --time",
                               job.id, format_duration(*job.limit_s)));
  }
  if (use_of(job).out_of_memory) {
    return because(fmt::format(
        "job {} used more memory than it had: ask for more with --sbatch=--mem=SIZE", job.id));
  }
  if (job.state == "CANCELLED") {
    return because(fmt::format("job {} was cancelled{}", job.id,
                               job.cancelled_by ? " by " + user_in_words(*job.cancelled_by) : ""));
  }
  const std::string log = log_of(job.raw_id, directory);
  if (const std::string words = last_words(log); !words.empty()) {
    return because(fmt::format("job {}: {}", job.id, words));
  }
  const std::string exit = exit_in_words(job);
  return {fmt::format("job {} {}{}{}", job.id, state_in_words(job.state),
                      exit.empty() ? "" : ", " + exit,
                      log.empty() ? "" : ": its log is " + printable(log)),
          job.exit_status, false};
}

}  // namespace

JobFailure first_failure(const std::vector<std::string>& numbers, const std::string& directory) {
  for (const std::string& number : numbers) {
    for (const SlurmJob& job : parts_of(number)) {
      if (has_ended(job) && job.state != "COMPLETED") {
        return failure_of(job, directory);
      }
    }
  }
  return {};
}

bool was_ended(const std::string& number) {
  for (const SlurmJob& job : parts_of(number)) {
    if (has_ended(job) && job.state != "COMPLETED" && job.state != "FAILED") return true;
  }
  return false;
}

}  // namespace stoker
