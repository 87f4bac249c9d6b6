// SPDX-License-Identifier: Apache-2.0
#include "cli/slurm_jobs.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <thread>

#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/output.h"
#include "cli/progress_bar.h"
#include "cli/slurm_failures.h"
#include "os/node.h"
#include "os/output_file.h"
#include "os/own_place.h"
#include "slurm/submit.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

constexpr const char* kJobsFile = "jobs";      // numbers of the jobs; they add those they submit
constexpr const char* kResultFile = "result";  // what the last one prints
constexpr const char* kStatusFile = "status";  // its exit status
constexpr uint64_t kMostResult = 64 << 20;

constexpr std::string_view kOfSlurm[] = {
    kSlurmOption.name,   kPrintOption.name, kNoWaitOption.name, kPartitionOption.name,
    kAccountOption.name, kTimeOption.name,  kSbatchOption.name, kHelpOption.name};

std::string script_path(const std::string& directory, const PlannedJob& job) {
  return directory + "/" + job.script.name + ".sh";
}

}  // namespace

std::vector<std::string> jobs_of(const std::string& directory) {
  std::vector<std::string> jobs;
  std::istringstream lines(read_file(directory + "/" + kJobsFile, kMostResult));
  for (std::string line; std::getline(lines, line);) {
    const std::string number = line.substr(0, line.find_first_not_of("0123456789"));
    const bool known = std::find(jobs.begin(), jobs.end(), number) != jobs.end();
    if (!number.empty() && !known) jobs.push_back(number);
  }
  return jobs;
}

// Scripts are written before the first is submitted: a job may submit them again.
std::vector<std::string> submit_jobs(const std::string& directory,
                                     const std::vector<PlannedJob>& jobs) {
  make_in_own_place(directory);
  for (const PlannedJob& job : jobs) {
    write_file(script_path(directory, job), as_bytes(text_of(job.script)));
  }
  std::vector<std::string> numbers;
  std::string list;
  try {
    for (const PlannedJob& job : jobs) {
      const std::string dependency =
          job.after.empty() ? "" : fmt::format("{}:{}", job.after, fmt::join(numbers, ":"));
      numbers.push_back(submit_job(script_path(directory, job), dependency));
      list += numbers.back() + "\n";
    }
  } catch (const Error&) {
    cancel_jobs(numbers);  // those before it would be a part of something
    throw;
  }
  write_file(directory + "/" + kJobsFile, as_bytes(list));
  return numbers;
}

void print_scripts(const std::string& directory, const std::vector<PlannedJob>& jobs) {
  for (const PlannedJob& job : jobs) {
    print(fmt::format("# {}{}\n{}\n", printable(script_path(directory, job)),
                      job.after.empty() ? "" : ", " + job.after + " those before",
                      text_of(job.script)));
  }
}

namespace {

void sleep_watching(const Progress& progress, std::chrono::milliseconds time) {
  constexpr std::chrono::milliseconds kStep(100);
  for (; time.count() > 0; time -= kStep) {
    progress.check_stop();
    std::this_thread::sleep_for(kStep);
  }
}

/// What squeue says, or nothing where it does not answer: controllers are restarted, and the jobs
/// go on. Throws when that has lasted too long.
class Queue {
 public:
  std::optional<std::map<std::string, QueuedTasks>> ask() {
    try {
      std::map<std::string, QueuedTasks> jobs = queued_jobs();
      silent_since_ns_ = 0;
      return jobs;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::interrupted) throw;
      constexpr int64_t kPatienceNs = 600'000'000'000;
      if (silent_since_ns_ == 0) {
        print_error(fmt::format("stoker: {}; the jobs go on, asking again\n", error.what()));
        silent_since_ns_ = monotonic_ns();
      }
      if (monotonic_ns() - silent_since_ns_ > kPatienceNs) throw;
      return std::nullopt;
    }
  }

 private:
  int64_t silent_since_ns_ = 0;  // 0: it has answered
};

/// Until none of the jobs waits or runs any more.
void wait_for(const std::string& directory, Progress& progress, const std::function<void()>& look) {
  using namespace std::chrono_literals;
  std::string shown;
  Queue queue;
  for (auto pause = 1000ms;; pause = std::min(pause + 1000ms, 10000ms)) {
    sleep_watching(progress, pause);
    look();
    const auto queued = queue.ask();
    if (!queued) continue;
    QueuedTasks all;
    for (const std::string& job : jobs_of(directory)) {
      const auto found = queued->find(job);
      if (found == queued->end()) continue;
      all.waiting += found->second.waiting;
      all.running += found->second.running;
      if (found->second.reason != "Dependency" && !found->second.reason.empty()) {
        all.reason = found->second.reason;
      }
    }
    if (all.waiting + all.running == 0) return;
    std::string line =
        fmt::format("stoker: {} running, {} waiting{}\n", counted(all.running, "task"), all.waiting,
                    all.reason.empty() ? "" : " (" + printable(all.reason) + ")");
    if (line == shown || ::isatty(STDERR_FILENO) == 0) continue;
    print_error(line);
    shown = std::move(line);
  }
}

/// Whoever stops waiting is asked what shall become of the jobs.
void offer_to_cancel(const std::string& directory) {
  const std::vector<std::string> numbers = jobs_of(directory);
  if (::isatty(STDIN_FILENO) != 0 && ::isatty(STDERR_FILENO) != 0) {
    print_error(fmt::format("stoker: cancel the jobs {} too? [y/N] ", fmt::join(numbers, " ")));
    std::string answer;
    std::getline(std::cin, answer);
    if (answer.starts_with('y') || answer.starts_with('Y')) {
      cancel_jobs(numbers);
      return print_error("stoker: cancelled; the same command goes on from what they have done\n");
    }
  }
  print_error(
      fmt::format("stoker: the jobs go on; scancel {} ends them\n", fmt::join(numbers, " ")));
}

/// Prints what the last job left, and returns its exit status.
int print_result(std::string_view command, const std::string& directory, const Progress& progress) {
  const std::string result = directory + "/" + kResultFile, status = directory + "/" + kStatusFile;
  const std::vector<std::string> numbers = jobs_of(directory);
  // On shared storage this node may see what another one has written some seconds later.
  const bool ended = !fs::exists(status) && was_ended(numbers.back());
  for (int tries = 0; !ended && !fs::exists(status) && tries < 30; ++tries) {
    sleep_watching(progress, std::chrono::seconds(1));
  }
  if (!fs::exists(status)) {
    // The last one runs whatever became of those before it.
    std::string why = first_failure({numbers.back()}, directory).why;
    if (why.empty()) why = first_failure(numbers, directory).why;
    throw Error(
        ErrorKind::io,
        fmt::format("{}; {}logs are in {}", why.empty() ? "the last job left no result" : why,
                    command == "pack" ? "the same command goes on from what is done; " : "",
                    printable(directory)));
  }
  print(read_file(result, kMostResult));
  const std::string text = read_file(status, 16);
  int code = kExitFailed;
  std::from_chars(text.data(), text.data() + text.size(), code);
  return code;
}

}  // namespace

std::string new_jobs_directory(std::string_view command) {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const OwnPlace place = find_own_place("jobs", SeenBy::all_nodes);
  std::string directory =
      fmt::format("{}/{}-{:%Y%m%d-%H%M%S}-{}", place.path, command, fmt::gmtime(now), ::getpid());
  if (!place.instead.empty()) {
    print_error(
        fmt::format("stoker: job scripts and logs go to {}: another user could replace them "
                    "here, because {}\n",
                    printable(directory), place.instead));
  }
  return directory;
}

BatchScript script_for(const Arguments& arguments, std::string_view name,
                       const std::string& directory, const SiteJobs& defaults) {
  BatchScript script;
  script.name = name;
  script.log = fmt::format("{}/{}-%j.log", directory, name);
  script.request.partition = arguments.value(kPartitionOption.name).value_or(defaults.partition);
  script.request.account = arguments.value(kAccountOption.name).value_or(defaults.account);
  script.request.time = arguments.value(kTimeOption.name).value_or(defaults.time);
  script.more = defaults.sbatch;
  // What comes last counts for sbatch.
  for (const std::string& option : arguments.values(kSbatchOption.name)) {
    script.more.push_back(option);
  }
  script.more.emplace_back("--kill-on-invalid-dep=yes");
  return script;
}

std::vector<std::string> same_command(std::string_view command, const Arguments& arguments,
                                      std::span<const Option> options) {
  std::vector<std::string> words = {own_program("stoker"), std::string(command)};
  for (const Option& option : options) {
    const bool left =
        std::find(std::begin(kOfSlurm), std::end(kOfSlurm), option.name) != std::end(kOfSlurm);
    if (left) continue;
    if (option.value.empty()) {
      if (arguments.flag(option.name)) words.emplace_back(option.name);
      continue;
    }
    for (const std::string& value : arguments.values(option.name)) {
      words.push_back(fmt::format("{}={}", option.name, value));
    }
  }
  return words;
}

std::string body_with_result(const std::string& directory, const std::vector<std::string>& words) {
  const auto file = [&](const char* name) { return shell_quoted(directory + "/" + name); };
  return fmt::format("status=0\n{} >{} || status=$?\necho \"$status\" >{}\nexit \"$status\"\n",
                     shell_quoted(words), file(kResultFile), file(kStatusFile));
}

int run_jobs(std::string_view command, const std::string& directory,
             const std::vector<PlannedJob>& jobs, const Arguments& arguments, Progress& progress,
             const std::function<void()>& look) {
  if (arguments.flag(kPrintOption.name)) {
    print_scripts(directory, jobs);
    return kExitDone;
  }
  const std::vector<std::string> numbers = submit_jobs(directory, jobs);
  const bool json = arguments.flag(kJsonOption.name);
  if (arguments.flag(kNoWaitOption.name)) {
    print(json ? to_text(Json{{"command", command}, {"jobs", numbers}, {"directory", directory}})
               : fmt::format("submitted: jobs {}; scripts, logs and the result are in {}\n",
                             fmt::join(numbers, " "), printable(directory)));
    return kExitDone;
  }
  if (!json) {
    print_error(fmt::format("stoker: jobs {}; scripts and logs are in {}\n",
                            fmt::join(numbers, " "), printable(directory)));
  }
  try {
    const ProgressBar bar(progress);
    wait_for(directory, progress, look);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) offer_to_cancel(directory);
    throw;
  }
  return print_result(command, directory, progress);
}

}  // namespace stoker
