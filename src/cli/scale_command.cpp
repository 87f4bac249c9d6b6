// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/output.h"
#include "cli/scale_plot.h"
#include "cli/scale_report.h"
#include "cli/slurm_failures.h"
#include "cli/slurm_jobs.h"
#include "measure/scale_document.h"
#include "os/output_file.h"
#include "os/site.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, 1> kPositionals = {kCommandWords};

constexpr std::array kOptions = {
    Option{"--threads", "N,N,...", "numbers of threads to run it with, as in 1,2,4,8"},
    Option{"--procs", "N,N,...", "numbers of processes; torchrun and mpirun are given them"},
    Option{"--gpus", "N,N,...", "numbers of GPUs; it sees no others"},
    Option{"--nodes", "N,N,...", "numbers of nodes; it is run by srun -N"},
    Option{"--weak", "", "at width n it does n times the work (default: the same work)"},
    Option{"--repeat", "N", "runs at each width (default: 3)"},
    Option{"--output", "DIR",
           "where the runs are recorded (default: a new one in stoker-scale/);\n"
           "where it holds some of the same command, goes on with the others"},
    Option{"--pattern", "REGEX", "samples a second in its output, in a group"},
    Option{"--no-hook", "", "leave Python alone: only times and --pattern are measured"},
    Option{"--no-pin", "", "let threads and processes run on any core"},
    Option{"--only", "N", "run this width alone; 0: none, show what --output has"},
    Option{"--seed", "N", "of the random order of the runs (default: any)"},
    Option{"--predict", "N,N,...", "what to expect there; at most 4 times what was measured"},
    Option{"--csv", "FILE", "write the curve as a table"},
    Option{"--svg", "FILE", "write the curve as a picture"},
    Option{"--cpu-run", "DIR", "instead of a command, with --gpu-run: is the GPU worth it?"},
    Option{"--gpu-run", "DIR", "the run directory of the same training on GPUs"},
    Option{"--price-core-hour", "X", "what a core costs an hour"},
    Option{"--price-gpu-hour", "Y", "what a GPU costs an hour, with the cores that come with it"},
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

constexpr std::array kAxes = {ScaleAxis::threads, ScaleAxis::procs, ScaleAxis::gpus,
                              ScaleAxis::nodes};
constexpr uint64_t kMostWidth = 1'000'000;
constexpr uint64_t kMostRepeats = 10'000;

[[noreturn]] void wrong(const std::string& message) { throw Error(ErrorKind::usage, message); }

/// "1,2,4": each once.
std::vector<uint64_t> numbers_of(std::string_view option, std::string_view text) {
  std::vector<uint64_t> numbers;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    uint64_t number = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, number);
    if (error != std::errc() || stop != text.data() + end || number < 1 || number > kMostWidth) {
      wrong(fmt::format("{} '{}': should be whole numbers from 1 to {}, as in 1,2,4", option,
                        printable(text), kMostWidth));
    }
    if (std::find(numbers.begin(), numbers.end(), number) == numbers.end()) {
      numbers.push_back(number);
    }
    at = end + 1;
  }
  return numbers;
}

std::optional<double> price_of(const Arguments& arguments, std::string_view option,
                               std::optional<double> of_site) {
  const auto text = arguments.value(option);
  if (!text) return of_site;
  double price = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), price);
  if (error != std::errc() || end != text->data() + text->size() || !(price > 0) ||
      !std::isfinite(price)) {
    wrong(fmt::format("{} '{}': should be a number above 0", option, printable(*text)));
  }
  return price;
}

ScaleOptions options_of(const Arguments& arguments) {
  ScaleOptions options;
  for (const ScaleAxis axis : kAxes) {
    const std::string option = fmt::format("--{}", name_of(axis));
    const auto text = arguments.value(option);
    if (!text) continue;
    if (!options.widths.empty()) {
      wrong(fmt::format("--{} and {}: one of them at a time", name_of(options.axis), option));
    }
    options.axis = axis;
    options.widths = numbers_of(option, *text);
  }
  if (options.widths.empty()) {
    wrong("how many of what? One of --threads, --procs, --gpus, --nodes, as in --threads 1,2,4");
  }
  options.command = arguments.rest();
  if (options.command.empty()) {
    wrong("a command is missing: stoker scale --threads 1,2,4 -- python train.py");
  }
  options.repeats = arguments.number("--repeat", 1).value_or(options.repeats);
  if (options.repeats > kMostRepeats) {
    wrong(fmt::format("--repeat '{}': {} is the most", options.repeats, kMostRepeats));
  }
  options.directory = arguments.value("--output").value_or("");
  options.weak = arguments.flag("--weak");
  options.pin = !arguments.flag("--no-pin");
  options.hook = !arguments.flag("--no-hook");
  options.pattern = arguments.value("--pattern").value_or("");
  options.seed = arguments.number("--seed", 0);
  options.only = arguments.number("--only", 0);
  // Each run may say the same.
  options.each_note = [said = std::make_shared<std::set<std::string>>()](const std::string& note) {
    if (said->insert(note).second) print_error("stoker: " + note + "\n");
  };
  if (options.only.value_or(0) != 0 && std::find(options.widths.begin(), options.widths.end(),
                                                 *options.only) == options.widths.end()) {
    wrong(fmt::format("--only {}: is none of the widths", *options.only));
  }
  return options;
}

void show_run(const ScaleOptions& options, const ScaleRun& run, size_t number, size_t all) {
  std::string text =
      fmt::format("stoker: run {} of {}: {}, ", number, all, counted(run.n, unit_of(options.axis)));
  if (run.exit_status != 0) {
    text += fmt::format("exit status {}", run.exit_status);
  } else if (run.rate) {
    text += fmt::format("{:.6g} {}", run.rate->value, run.counts_samples ? "samples/s" : "steps/s");
  } else {
    text += format_duration(run.seconds);
  }
  print_error(text + "\n");
}

/// The last lines of what a run wrote, for whoever asks why it failed.
std::string tail_of(const std::string& path) {
  constexpr uint64_t kMostLog = uint64_t{1} << 30;
  constexpr size_t kLines = 10;
  std::string log;
  try {
    log = read_file(path, kMostLog);
  } catch (const Error&) {
    return "";
  }
  size_t from = log.size();
  for (size_t line = 0; line <= kLines && from != std::string::npos && from > 0; ++line) {
    from = log.rfind('\n', from - 1);
  }
  std::string text;
  for (size_t at = from == std::string::npos || from == 0 ? 0 : from + 1; at < log.size();) {
    const size_t end = std::min(log.find('\n', at), log.size());
    text += "  " + printable(std::string_view(log).substr(at, end - at)) + "\n";
    at = end + 1;
  }
  return text;
}

int print_worth(const Arguments& arguments, bool json) {
  const auto cpu = arguments.value("--cpu-run");
  const auto gpu = arguments.value("--gpu-run");
  if (!cpu || !gpu) wrong("--cpu-run and --gpu-run: one needs the other");
  if (!arguments.rest().empty()) wrong("--cpu-run and --gpu-run: instead of a command");
  const Site site = read_site();
  const auto core_price = price_of(arguments, "--price-core-hour", site.core_hour);
  const auto gpu_price = price_of(arguments, "--price-gpu-hour", site.gpu_hour);
  if (core_price.has_value() != gpu_price.has_value()) {
    wrong(
        "--price-core-hour and --price-gpu-hour: one needs the other, here or in the site's "
        "file");
  }
  std::optional<HourPrices> prices;
  if (core_price) prices = HourPrices{*core_price, *gpu_price};
  const GpuWorth worth = gpu_worth(read_run(*cpu), read_run(*gpu), prices);
  print(json ? to_text(worth_document(worth, prices)) : gpu_worth_text(worth, prices) + "\n");
  return kExitDone;
}

int report(const ScalePlan& plan, const ScaleResult& result, const Arguments& arguments) {
  const auto predict = arguments.value("--predict");
  const ScaleAnalysis analysis =
      analyse_scale(result, plan.options.axis,
                    predict ? numbers_of("--predict", *predict) : std::vector<uint64_t>());
  const bool json = arguments.flag(kJsonOption.name);
  if (result.failed && !json) print_error(tail_of(result.failed->directory + ".log"));
  print(json ? to_text(scale_document(plan, result, analysis))
             : scale_text(plan.options, result, analysis, Style::of_stdout()));
  if (!result.widths.empty()) {
    if (const auto path = arguments.value("--csv")) {
      write_file(*path, as_bytes(scale_csv(result)));
    }
    if (const auto path = arguments.value("--svg")) {
      write_file(*path, as_bytes(scale_svg(plan.options, result, analysis)));
    }
  }
  if (result.failed) return result.failed->exit_status;
  // Of widths that others ran, at least one must have run.
  return plan.options.only == 0 && result.runs.empty() ? kExitFailed : kExitDone;
}

void ask_for(ScaleAxis axis, uint64_t n, JobRequest& request) {
  switch (axis) {
    case ScaleAxis::threads:
    case ScaleAxis::procs:
      request.cpus = n;
      request.nodes = 1;
      break;
    case ScaleAxis::gpus:
      request.gpus = fmt::format_int(n).str();
      break;
    case ScaleAxis::nodes:
      request.nodes = n;
      break;
  }
}

/// One job per width, and a last one for the summary.
int sweep_by_jobs(const Arguments& arguments, const ScaleOptions& options, Progress& progress) {
  const std::string directory = new_jobs_directory("scale");
  const auto words_for = [&](uint64_t n) {
    std::vector<std::string> words = same_command("scale", arguments, kOptions);
    std::erase_if(words, [](const std::string& word) { return word.starts_with("--output="); });
    words.push_back("--output=" + std::filesystem::absolute(options.directory.empty()
                                                                ? directory + "/sweep"
                                                                : options.directory)
                                      .string());
    // The same order for all of them.
    if (!options.seed) words.emplace_back("--seed=1");
    words.push_back(fmt::format("--only={}", n));
    words.emplace_back("--");
    words.insert(words.end(), options.command.begin(), options.command.end());
    return words;
  };
  std::vector<PlannedJob> jobs;
  for (const uint64_t n : options.widths) {
    PlannedJob job{script_for(arguments, fmt::format("stoker-scale-{}", n), directory), ""};
    ask_for(options.axis, n, job.script.request);
    job.script.body = shell_quoted(words_for(n)) + "\n";
    jobs.push_back(std::move(job));
  }
  PlannedJob last{script_for(arguments, "stoker-scale-summary", directory), "afterany"};
  last.script.body = body_with_result(directory, words_for(0));
  jobs.push_back(std::move(last));
  const int status = run_jobs("scale", directory, jobs, arguments, progress, [] {});
  if (status == kExitDone) return status;
  const JobFailure failure = first_failure(jobs_of(directory), directory);
  if (!failure.why.empty()) print_error(fmt::format("stoker: {}\n", failure.why));
  // The last job knows runs alone: a command that cannot be started leaves none.
  const bool not_started =
      failure.exit_status == kExitNotFound || failure.exit_status == kExitNotExecutable;
  return not_started ? failure.exit_status : status;
}

int run_sweep(const Arguments& arguments, Progress& progress) {
  const bool json = arguments.flag(kJsonOption.name);
  if (arguments.value("--cpu-run") || arguments.value("--gpu-run")) {
    return print_worth(arguments, json);
  }
  ScaleOptions options = options_of(arguments);
  if (const auto predict = arguments.value("--predict")) numbers_of("--predict", *predict);
  if (arguments.flag(kSlurmOption.name)) return sweep_by_jobs(arguments, options, progress);
  if (!json) {
    options.each_end = [&options](const ScaleRun& run, size_t number, size_t all) {
      show_run(options, run, number, all);
    };
  }
  const ScalePlan plan = plan_scale(options);
  try {
    return report(plan, run_scale(plan, progress), arguments);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) {
      print_error(fmt::format("stoker: the same command with --output {} goes on from here\n",
                              shell_word(plan.options.directory)));
    }
    // As `stoker time` does it, for a command that could not even be started.
    if (error.os_error() != ENOENT && error.os_error() != EACCES) throw;
    print_error(fmt::format("stoker: {}\n", error.what()));
    if (json) print(to_text(error_document("scale", error.kind(), error.what())));
    return error.os_error() == ENOENT ? kExitNotFound : kExitNotExecutable;
  }
}

}  // namespace

constinit const Command kScaleCommand = {
    .name = "scale",
    .summary = "run a command at 1, 2, 4 threads, processes, GPUs or nodes: how many to ask for?",
    .positionals = kPositionals,
    .description =
        "Runs COMMAND at each width, several times, in random order, and measures each run as\n"
        "`stoker time` does. {n} in it becomes the width; OMP_NUM_THREADS and the like are set,\n"
        "CUDA_VISIBLE_DEVICES is narrowed. Says what each width brings, what Amdahl's,\n"
        "Gustafson's and the universal scalability law make of it, and how many to ask for.\n"
        "Where a run tells no samples/s, its wall time counts.\n",
    .options = kOptions,
    .examples =
        "  stoker scale --threads 1,2,4,8 -- python train.py --epochs 1\n"
        "  stoker scale --procs 1,2,4 --output sweep -- torchrun train.py\n"
        "  stoker scale --threads 1,2,4 --pattern 'rate: ([0-9.]+)' -- ./solve --threads {n}\n"
        "  stoker scale --gpus 1,2,4,8 --slurm --partition gpu -- torchrun train.py\n"
        "  stoker scale --cpu-run runs/cpu --gpu-run runs/gpu \\\n"
        "    --price-core-hour 0.02 --price-gpu-hour 1.5\n",
    .run = run_sweep,
};

}  // namespace stoker
