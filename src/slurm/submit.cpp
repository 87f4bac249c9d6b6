// SPDX-License-Identifier: Apache-2.0
#include "slurm/submit.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "os/command_output.h"
#include "os/slurm_answer.h"

namespace stoker {
namespace {

// A busy controller takes its time; longer than that it does not answer at all.
constexpr double kPatience = 60;

/// What it printed. Throws Error(io) where it could not be run, or failed.
std::string printed_by(const std::vector<std::string>& words, const CommandAnswer& answer) {
  if (!answer.found) {
    throw Error(ErrorKind::io, fmt::format("{}: not found: is this a machine from which Slurm's "
                                           "jobs are submitted?",
                                           words[0]));
  }
  if (answer.status == 0) return answer.output;
  std::string cause = answer.errors;
  while (!cause.empty() && cause.back() == '\n') cause.pop_back();
  if (answer.status < 0 && cause.empty()) cause = "no answer within a minute";
  std::replace(cause.begin(), cause.end(), '\n', ' ');
  throw Error(ErrorKind::io, fmt::format("{} failed: {}", words[0], printable(cause)));
}

}  // namespace

std::string submit_job(const std::string& script, const std::string& dependency) {
  std::vector<std::string> words = {"sbatch", "--parsable"};
  if (!dependency.empty()) {
    // What it waits for may fail: then it must not wait for ever.
    words.insert(words.end(), {"--dependency=" + dependency, "--kill-on-invalid-dep=yes"});
  }
  words.push_back(script);
  const std::string answer = printed_by(words, command_answer(words, kPatience));
  // "12" or "12;cluster"
  const std::string number = answer.substr(0, answer.find_first_not_of("0123456789"));
  if (number.empty()) {
    throw Error(ErrorKind::io,
                fmt::format("sbatch answers '{}', which is no number of a job", printable(answer)));
  }
  return number;
}

std::map<std::string, QueuedTasks> queued_jobs() {
  std::map<std::string, QueuedTasks> jobs;
  const std::vector<std::string> words = {
      "squeue",   "--noheader", "--array", "--all", "--user", fmt::format_int(::getuid()).str(),
      "--format", "%F|%T|%r"};
  std::istringstream lines(printed_by(words, slurm_answer(words, kPatience)));
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find('|');
    const size_t second = line.find('|', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    QueuedTasks& tasks = jobs[line.substr(0, first)];
    const bool waits = line.substr(first + 1, second - first - 1) == "PENDING";
    ++(waits ? tasks.waiting : tasks.running);
    if (waits) tasks.reason = line.substr(second + 1);
  }
  return jobs;
}

void cancel_jobs(const std::vector<std::string>& jobs) {
  if (jobs.empty()) return;
  std::vector<std::string> words = {"scancel"};
  words.insert(words.end(), jobs.begin(), jobs.end());
  printed_by(words, command_answer(words, kPatience));
}

}  // namespace stoker
