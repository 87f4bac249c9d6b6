// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/live_view.h"
#include "cli/output.h"
#include "cli/slurm_failures.h"
#include "cli/slurm_jobs.h"
#include "cli/time_report.h"
#include "measure/child.h"
#include "measure/live_run.h"
#include "measure/run_document.h"
#include "measure/run_summary.h"
#include "measure/time.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, 1> kPositionals = {kCommandWords};

constexpr std::array kOptions = {
    Option{"--run", "DIR", "where the run is recorded (default: a new one in stoker-runs/)"},
    Option{"--pattern", "REGEX",
           "for what is not Python: samples a second in its output, in a group,\n"
           "as in 'images/sec: ([0-9.]+)'"},
    Option{"--no-hook", "", "leave Python alone: only what the processes use is measured"},
    Option{"--repeat", "N", "run it N times; the interval is then over runs"},
    Option{"--compare", "", "instead of a command, two run directories: is B faster than A?"},
    Option{"--attach", "PID", "watch a process that already runs, with its children"},
    Option{"--follow", "DIR", "show a run that is being recorded"},
    Option{"--plain", "", "no live view, also on a terminal"},
    kSlurmOption,
    kPartitionOption,
    kAccountOption,
    kTimeOption,
    kSbatchOption,
    kPrintOption,
    kNoWaitOption,
    kJsonOption,
    kHelpOption,
};

constexpr double kPlainSeconds = 10;  // between two lines where there is no live view

/// Shows what is going on while a command runs.
class Show {
 public:
  Show(bool live, bool silent) : live_(live), silent_(silent) {
    if (live_) terminal_ = std::make_unique<LiveTerminal>();
  }

  TimeOptions::Terminal* terminal() { return terminal_.get(); }

  void operator()(const RunInfo& info, const ResourceSample& sample) {
    if (silent_ || sample.time_s < next_s_) return;
    steps_.update(info);
    Style style;
    style.unicode = live_ && unicode_locale();
    const size_t width = live_ ? terminal_->width() : 120;
    const std::vector<std::string> lines = {
        shorten(steps_line(sample.time_s, steps_, style.unicode), width, style),
        shorten(resources_line(info, sample, before_, style.unicode), width, style)};
    before_ = sample;
    next_s_ = sample.time_s + (live_ ? 1 : kPlainSeconds);
    if (live_) return terminal_->draw(lines);
    if (sample.time_s < kPlainSeconds) {
      next_s_ = kPlainSeconds;
      return;
    }
    print_error(fmt::format("stoker: {}\n", fmt::join(lines, ", ")));
  }

 private:
  bool live_, silent_;
  std::unique_ptr<LiveTerminal> terminal_;
  LiveSteps steps_;
  ResourceSample before_;
  double next_s_ = 0;
};

TimeOptions options_of(const Arguments& arguments) {
  TimeOptions options;
  options.command = arguments.rest();
  options.directory = arguments.value("--run").value_or("");
  options.pattern = arguments.value("--pattern").value_or("");
  options.hook = !arguments.flag("--no-hook");
  options.each_note = [](const std::string& note) { print_error("stoker: " + note + "\n"); };
  return options;
}

RunInfo run_once(TimeOptions options, bool live, bool silent) {
  Show show(live, silent);
  options.terminal = show.terminal();
  options.each_look = std::ref(show);
  return time_command(options);
}

int print_runs(const std::vector<RunInfo>& infos, bool json) {
  std::vector<Run> runs;
  std::vector<RunSummary> summaries;
  for (const RunInfo& info : infos) {
    runs.push_back(read_run(info.directory));
    runs.back().info = info;  // also where the disk was full
    summaries.push_back(summarise(runs.back()));
  }
  if (json) {
    print(to_text(time_document(runs, summaries)));
  } else {
    Style style = Style::of_stdout();
    style.colour = style.colour && ::isatty(STDERR_FILENO) == 1;
    print_error(time_text(runs, summaries, style));
  }
  return infos.back().exit_status;
}

int compare(const std::vector<std::string>& directories, bool json) {
  if (directories.size() != 2) {
    throw Error(ErrorKind::usage, "--compare needs two run directories: --compare A B");
  }
  const Run a = read_run(directories[0]);
  const Run b = read_run(directories[1]);
  print(json ? to_text(comparison_document(a, b)) : comparison_text(a, b));
  return kExitDone;
}

int follow(const std::string& directory, const Progress& progress) {
  LiveRun run(directory);
  const bool unicode = unicode_locale();
  while (!progress.stop.load()) {
    run.update();
    std::string line = steps_line(run.seconds(), run.steps(), unicode);
    if (run.resources()) {  // only where `stoker time` watches it
      line += ", " + resources_line(run.info(), *run.resources(), run.resources_before(), unicode);
    } else if (!run.steps().any()) {
      line += ", no steps yet";
    }
    print(line + "\n");
    if (run.over()) return kExitDone;
    for (int i = 0; i < 10 && !progress.stop.load(); ++i) ::poll(nullptr, 0, 100);
  }
  return kExitInterrupted;
}

int attach(const Arguments& arguments, const Progress& progress, bool json) {
  TimeOptions options = options_of(arguments);
  const auto pid = static_cast<pid_t>(arguments.number("--attach", 1).value_or(0));
  options.command = {"--attach", std::to_string(pid)};
  Show show(false, json);
  options.each_look = std::ref(show);
  return print_runs({time_attached(pid, options, progress)}, json);
}

/// Runs and measures the command in a job; what it recorded is told here.
int time_by_job(const Arguments& arguments, const TimeOptions& options, Progress& progress) {
  const std::string directory = new_jobs_directory("time");
  const std::string run =
      std::filesystem::absolute(options.directory.empty() ? directory + "/run" : options.directory);
  std::vector<std::string> words = same_command("time", arguments, kOptions);
  std::erase_if(words, [](const std::string& word) {
    return word.starts_with("--run=") || word == kJsonOption.name;
  });
  words.push_back("--run=" + run);
  words.emplace_back("--");
  words.insert(words.end(), options.command.begin(), options.command.end());
  PlannedJob job{script_for(arguments, "stoker-time", directory), ""};
  job.script.body = body_with_result(directory, words);
  const int status = run_jobs("time", directory, {job}, arguments, progress, [] {});
  if (arguments.flag(kPrintOption.name) || arguments.flag(kNoWaitOption.name)) return status;
  const bool json = arguments.flag(kJsonOption.name);
  if (status == kExitDone || std::filesystem::exists(run + "/run.json")) {
    return print_runs({read_run(run).info}, json);
  }
  // It was not started: as where it is run here.
  std::string why = first_failure(jobs_of(directory), directory).why;
  if (why.empty()) why = fmt::format("the job failed: its log is in {}", printable(directory));
  print_error(fmt::format("stoker: {}\n", why));
  const ErrorKind kind = status == kExitNotFound ? ErrorKind::not_found : ErrorKind::io;
  if (json) print(to_text(error_document("time", kind, why)));
  return status;
}

int run_time(const Arguments& arguments, Progress& progress) {
  const bool json = arguments.flag(kJsonOption.name);
  if (arguments.flag("--compare")) return compare(arguments.rest(), json);
  if (const auto directory = arguments.value("--follow")) return follow(*directory, progress);
  if (arguments.value("--attach")) return attach(arguments, progress, json);
  const TimeOptions options = options_of(arguments);
  if (options.command.empty()) {
    throw Error(ErrorKind::usage, "a command is missing: stoker time -- python train.py");
  }
  const uint64_t repeats = arguments.number("--repeat", 1).value_or(1);
  if (repeats > 1 && !options.directory.empty()) {
    throw Error(ErrorKind::usage, "--run and --repeat: each run has a directory of its own");
  }
  if (arguments.flag(kSlurmOption.name)) {
    if (repeats > 1) throw Error(ErrorKind::usage, "--slurm and --repeat: a job is one run");
    return time_by_job(arguments, options, progress);
  }
  const bool live = !json && !arguments.flag("--plain") && LiveTerminal::possible();
  std::vector<RunInfo> infos;
  for (uint64_t i = 0; i < repeats; ++i) {
    try {
      infos.push_back(run_once(options, live, json));
    } catch (const CannotRun& error) {
      // As shells, env and nice do it: whoever calls can tell it from the command's own failure.
      print_error(fmt::format("stoker: {}\n", error.what()));
      if (json) print(to_text(error_document("time", error.kind(), error.what())));
      return error.os_error() == ENOENT ? kExitNotFound : kExitNotExecutable;
    }
    // The others would say nothing, or are not wanted any more.
    if (infos.back().exit_status != 0 || infos.back().asked_to_stop) break;
  }
  return print_runs(infos, json);
}

}  // namespace

constinit const Command kTimeCommand = {
    .name = "time",
    .summary = "run a training command and measure it: samples/s, warm-up, waiting, resources",
    .positionals = kPositionals,
    .description =
        "Runs COMMAND unchanged. What PyTorch, Lightning, Hugging Face, Keras, tf.data or a\n"
        "stoker.Loader in it takes from its data is watched without touching the script; of "
        "anything\n"
        "else, its output or its processes. Says how many samples a second the steady part makes,\n"
        "how long it waits for data, what it used of what it was given, and what to change. Its "
        "exit\n"
        "status is the command's own. The run is recorded in a directory for other commands.\n",
    .options = kOptions,
    .examples =
        "  stoker time -- python train.py --epochs 2\n"
        "  stoker time --run runs/a -- torchrun --nproc-per-node 2 train.py\n"
        "  stoker time --pattern 'images/sec: ([0-9.]+)' -- ./train\n"
        "  stoker time --repeat 5 --json -- python train.py\n"
        "  stoker time --slurm --partition gpu --sbatch=--gpus=1 -- python train.py\n"
        "  stoker time --compare runs/a runs/b\n",
    .run = run_time,
};

}  // namespace stoker
