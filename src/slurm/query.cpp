// SPDX-License-Identifier: Apache-2.0
#include "slurm/query.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "os/slurm_answer.h"
#include "slurm/accounting.h"
#include "slurm/text.h"

namespace stoker {
namespace {

const std::vector<std::string> kAccounting = {"sacct", "-P", "--noconvert",
                                              fmt::format("--delimiter={}", kSlurmDelimiter)};

std::string first_line(std::string_view text) { return printable(text.substr(0, text.find('\n'))); }

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// What sacct knows; nothing where it cannot be asked, and then a note.
std::vector<SlurmJob> ask_accounting(const std::vector<std::string>& which, const SlurmRunner& run,
                                     std::vector<std::string>& notes) {
  const CommandAnswer help = run({"sacct", "--helpformat"});
  if (!help.found) return {};
  const CommandAnswer answer =
      run(with(with(kAccounting, which), {"-o", accounting_columns(help.output)}));
  if (answer.status != 0) {
    notes.push_back(fmt::format(
        "the accounting database does not answer ({}): what the job used is not known, the rest is "
        "from squeue, which forgets jobs minutes after their end",
        answer.errors.empty() ? "no reason given" : first_line(answer.errors)));
    return {};
  }
  size_t left_out = 0;
  std::vector<SlurmJob> jobs = jobs_from_accounting(answer.output, left_out);
  if (left_out > 0) {
    notes.push_back(
        fmt::format("{} rows of sacct's output made no sense and are left out", left_out));
  }
  return jobs;
}

std::vector<SlurmJob> ask_queue(const std::vector<std::string>& which, const SlurmRunner& run) {
  const CommandAnswer answer =
      run(with({"squeue", "-h", "-r", "-a", "-t", "all", "-o", queue_format()}, which));
  size_t left_out = 0;
  if (answer.status != 0) return {};
  return jobs_from_queue(answer.output, left_out);
}

/// A text that the user chose, of one job: all of what the command says, newlines included.
std::string ask_text(const std::string& raw_id, const std::string& column,
                     const std::string& letter, const SlurmRunner& run) {
  const auto clean = [](std::string text) {
    if (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  };
  const CommandAnswer queue = run({"squeue", "-h", "-t", "all", "-j", raw_id, "-o", "%" + letter});
  if (queue.status == 0 && !queue.output.empty()) return clean(queue.output);
  const CommandAnswer answer = run({"sacct", "-X", "-n", "-P", "-j", raw_id, "-o", column});
  return answer.status == 0 ? clean(answer.output) : "";
}

/// Accounting hears of a job in pieces, a little later.
void fill(SlurmResources& known, const SlurmResources& other) {
  if (known.nodes.value_or(0) == 0) known.nodes = other.nodes;
  if (known.cores.value_or(0) == 0) known.cores = other.cores;
  if (!known.memory) known.memory = other.memory;
  if (!known.gpus) known.gpus = other.gpus;
}

/// Names of many jobs at once. One that holds newlines may become lines that name another job of
/// the same user, and nothing else.
void ask_names(std::vector<SlurmJob>& jobs, const std::vector<std::string>& which,
               const SlurmRunner& run) {
  const CommandAnswer answer =
      run(with(with(kAccounting, which), {"-X", "-n", "-o", "JobIDRaw,JobName"}));
  std::map<std::string, std::string, std::less<>> names;
  std::istringstream lines(answer.output);
  for (std::string line; std::getline(lines, line);) {
    const size_t end = line.find(kSlurmDelimiter);
    if (end != std::string::npos) names.emplace(line.substr(0, end), line.substr(end + 1));
  }
  for (SlurmJob& job : jobs) {
    if (const auto found = names.find(job.raw_id); found != names.end()) job.name = found->second;
  }
}

/// The queue knows first what changes: state, reason, when a job will start.
void take_from_queue(std::vector<SlurmJob>& jobs, const std::vector<SlurmJob>& queue) {
  for (const SlurmJob& now : queue) {
    const auto known = std::find_if(jobs.begin(), jobs.end(), [&](const SlurmJob& job) {
      return job.raw_id == now.raw_id || job.id == now.id;
    });
    if (known == jobs.end()) {
      // Tasks that wait are one row of sacct, "123_[5-9]", and many of squeue.
      const bool waiting = std::any_of(jobs.begin(), jobs.end(), [&](const SlurmJob& job) {
        return job.pending() && job.id.find('[') != std::string::npos &&
               job.family() == now.family();
      });
      if (!waiting || !now.pending()) jobs.push_back(now);
      continue;
    }
    if (now.pending() || now.active() || known->pending() || known->active()) {
      known->state = now.state;
      known->start = now.start;
      if (now.active() && !now.nodes.empty()) known->nodes = now.nodes;
    }
    if (known->partition.empty()) known->partition = now.partition;
    if (!known->limit_s) known->limit_s = now.limit_s;
    fill(known->asked, now.asked);
    fill(known->granted, now.granted);
    known->reason = now.reason;
    if (known->id.find('[') == std::string::npos) known->id = now.id;
  }
}

void ask_running(SlurmJob& job, const SlurmRunner& run, std::vector<std::string>& notes) {
  const CommandAnswer help = run({"sstat", "--helpformat"});
  const CommandAnswer answer =
      run({"sstat", "-a", "-P", "--noconvert", "-j", job.raw_id, "-o", live_columns(help.output)});
  if (answer.status == 0) {
    std::string text = answer.output;  // sstat of some releases has no --delimiter
    std::replace(text.begin(), text.end(), '|', kSlurmDelimiter);
    add_live_use(job, text);
  }
  const bool told = std::any_of(job.steps.begin(), job.steps.end(),
                                [](const SlurmStep& step) { return step.cpu_s && step.memory; });
  if (!told) {
    notes.push_back(
        fmt::format("what job {} uses while it runs is not known: sstat says {}", job.id,
                    answer.errors.empty() ? "nothing (yet)" : first_line(answer.errors)));
  }
}

void require_slurm(const SlurmRunner& run) {
  const CommandAnswer answer = run({"squeue", "--version"});
  if (answer.found) return;
  throw Error(ErrorKind::unsupported,
              "there is no Slurm here: squeue is not in PATH (on a cluster, try its login node, or "
              "`module load slurm`)");
}

}  // namespace

SlurmRunner slurm_runner() {
  return [](const std::vector<std::string>& words) {
    constexpr double kSeconds = 60;
    return slurm_answer(words, kSeconds);
  };
}

SlurmJobs query_job(const std::string& id, const SlurmRunner& run) {
  static const std::regex form("[0-9]{1,10}([_+][0-9]{1,10})?");
  if (!std::regex_match(id, form)) {
    throw Error(
        ErrorKind::usage,
        fmt::format("'{}' is no number of a job: 123, 123_4 (a task of an array) or 123+1 (a "
                    "component of a heterogeneous job)",
                    printable(id)));
  }
  require_slurm(run);
  SlurmJobs answer;
  answer.jobs = ask_accounting({"-j", id}, run, answer.notes);
  take_from_queue(answer.jobs, ask_queue({"-j", id}, run));
  if (answer.jobs.empty()) {
    throw Error(
        ErrorKind::not_found,
        fmt::format("job {} is not known: its number is wrong, the site has deleted its record, "
                    "or it is another user's and private here{}",
                    id, answer.notes.empty() ? "" : " (" + answer.notes.front() + ")"));
  }
  constexpr size_t kMostAsked = 16;  // an array may have thousands of tasks
  size_t asked = 0;
  for (SlurmJob& job : answer.jobs) {
    if (job.active() && asked++ < kMostAsked) ask_running(job, run, answer.notes);
  }
  SlurmJob& first = answer.jobs.front();
  first.name = ask_text(first.raw_id, "JobName", "j", run);
  first.work_dir = ask_text(first.raw_id, "WorkDir", "Z", run);
  for (SlurmJob& job : answer.jobs) {
    job.name = first.name;
    job.work_dir = first.work_dir;
  }
  return answer;
}

SlurmJobs query_user_jobs(const std::string& user, unsigned days, const SlurmRunner& run) {
  require_slurm(run);
  SlurmJobs answer;
  const std::vector<std::string> which = {"-u", user, "-S", fmt::format("now-{}days", days)};
  answer.jobs = ask_accounting(which, run, answer.notes);
  if (!answer.jobs.empty()) ask_names(answer.jobs, which, run);
  take_from_queue(answer.jobs, ask_queue({"-u", user}, run));
  return answer;
}

}  // namespace stoker
