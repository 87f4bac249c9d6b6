// SPDX-License-Identifier: Apache-2.0
#include "slurm/query.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "os/node.h"
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

/// A text that the user chose, of one job: all of what the command says, newlines included. Asked
/// about one task or component: the number of the last task, and of the first component, is that of
/// all of them, which would each say it.
std::string ask_text(const SlurmJob& job, const std::string& column, const std::string& letter,
                     const SlurmRunner& run) {
  const std::string one = job.id.find('[') == std::string::npos ? job.id : job.raw_id;
  const auto said = [&](const std::vector<std::string>& words) {
    CommandAnswer answer = run(words);
    if (answer.status != 0) return std::string();
    if (!answer.output.empty() && answer.output.back() == '\n') answer.output.pop_back();
    return std::move(answer.output);
  };
  const std::vector<std::string> queue = {"squeue", "-h", "-t", "all",
                                          "-j",     one,  "-o", "%" + letter};
  const std::vector<std::string> accounting = {"sacct", "-X", "-n", "-P", "-j", one, "-o", column};
  // squeue shows all components, whichever it is asked for.
  const bool component = one.find('+') != std::string::npos;
  const std::string text = said(component ? accounting : queue);
  return text.empty() ? said(component ? queue : accounting) : text;
}

/// Whether --mem-per-cpu was asked for: releases since 21.08 do not say it in sacct's columns. The
/// controller knows for some minutes, and where a site stores it, the command line or the script.
void ask_memory_basis(SlurmJob& job, const SlurmRunner& run) {
  if (job.memory_basis_known) return;
  const auto told = [&](const std::string& text, const char* core, const char* node) {
    // Memory for each GPU is a third way, of which there is no advice.
    static const std::regex per_gpu("--mem-per-gpu|MemPerTres=");
    if (std::regex_search(text, per_gpu)) return true;
    job.memory_per_core = std::regex_search(text, std::regex(core));
    job.memory_basis_known = job.memory_per_core || std::regex_search(text, std::regex(node));
    return job.memory_basis_known;
  };
  const CommandAnswer now = run({"scontrol", "show", "job", job.raw_id});
  if (now.status == 0 && told(now.output, " MinMemoryCPU=", " MinMemoryNode=")) return;
  const CommandAnswer line = run({"sacct", "-X", "-n", "-P", "-j", job.raw_id, "-o", "SubmitLine"});
  if (line.status == 0 && told(line.output, "--mem-per-cpu", "--mem[= ]")) return;
  const CommandAnswer script = run({"sacct", "-B", "-j", job.raw_id});
  if (script.status == 0) told(script.output, "--mem-per-cpu", "#!");
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

/// Tasks that wait are one row of sacct, "123_[5-9]", and many of squeue: as many jobs.
void part_waiting_tasks(std::vector<SlurmJob>& jobs, const std::vector<SlurmJob>& queue) {
  std::vector<SlurmJob> parted;
  for (const SlurmJob& job : jobs) {
    bool found = false;
    for (const SlurmJob& task : queue) {
      if (job.id.find('[') == std::string::npos || !task.pending()) continue;
      if (task.family() != job.family() || task.id.find('[') != std::string::npos) continue;
      parted.push_back(job);
      parted.back().id = task.id;
      found = true;
    }
    if (!found) parted.push_back(job);
  }
  jobs = std::move(parted);
}

/// The queue knows first what changes: state, reason, when a job will start.
void take_from_queue(std::vector<SlurmJob>& jobs, const std::vector<SlurmJob>& queue,
                     bool each_task) {
  if (each_task) part_waiting_tasks(jobs, queue);
  for (const SlurmJob& now : queue) {
    // All tasks that wait have the array's number.
    auto known = std::find_if(jobs.begin(), jobs.end(),
                              [&](const SlurmJob& job) { return job.id == now.id; });
    if (known == jobs.end()) {
      known = std::find_if(jobs.begin(), jobs.end(), [&](const SlurmJob& job) {
        return job.raw_id == now.raw_id && (!each_task || job.id.find('_') == std::string::npos);
      });
    }
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
  take_from_queue(answer.jobs, ask_queue({"-j", id}, run), true);
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
  first.name = ask_text(first, "JobName", "j", run);
  first.work_dir = ask_text(first, "WorkDir", "Z", run);
  if (!first.pending()) ask_memory_basis(first, run);
  for (SlurmJob& job : answer.jobs) {
    job.name = first.name;
    job.work_dir = first.work_dir;
    // The components of a heterogeneous job may each ask in another way.
    if (job.id.find('+') != std::string::npos && !job.pending()) ask_memory_basis(job, run);
    if (job.id.find('_') != std::string::npos) {
      job.memory_basis_known = first.memory_basis_known;
      job.memory_per_core = first.memory_per_core;
    }
  }
  return answer;
}

SlurmJobs query_user_jobs(const std::string& user, unsigned days, const SlurmRunner& run) {
  require_slurm(run);
  SlurmJobs answer;
  const std::vector<std::string> which = {"-u", user, "-S", fmt::format("now-{}days", days)};
  answer.jobs = ask_accounting(which, run, answer.notes);
  if (!answer.jobs.empty()) ask_names(answer.jobs, which, run);
  take_from_queue(answer.jobs, ask_queue({"-u", user}, run), false);
  if (answer.jobs.empty() && !is_user(user)) {
    throw Error(ErrorKind::not_found,
                fmt::format("there is no user '{}' here, and no job of such a user is known",
                            printable(user)));
  }
  return answer;
}

}  // namespace stoker
