// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/progress_bar.h"
#include "cli/slurm_jobs.h"
#include "cli/stage_before_job.h"
#include "cli/stage_report.h"
#include "dataset/schema.h"
#include "measure/child.h"
#include "os/node.h"
#include "os/open_file_limit.h"
#include "results/document.h"
#include "stage/all_nodes.h"
#include "stage/inventory.h"
#include "stage/references.h"
#include "stage/stage.h"
#include "stage/stage_document.h"
#include "stage/unseen_source.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 1> kPositionals = {"DATASET [PLACE] [-- COMMAND...]"};

constexpr Option kShowOption{"--list", "", "list what is staged at each PLACE instead of staging"};
constexpr Option kCleanOption{"--clean", "", "remove your copies that no job or process uses"};

constexpr Option kJobOption{"--job", "ID",
                            "with --clean: this job has ended; remove what only it needed"};
constexpr Option kNeededByOption{"--needed-by", "NAME",
                                 "this part of the job needs the copy, until --clean --needed-by"};

constexpr std::array kOptions = {
    Option{"--partial", "", "stage what fits; the loader reads the rest from the source"},
    Option{"--group", "GROUP", "let this group read the copy"},
    Option{"--keep", "", "the copy stays after the job or the COMMAND, until --clean"},
    Option{"--verify", "", "read what is there already, and copy again what is damaged"},
    kJobsOption,
    kBeforeJobOption,
    kThenOption,
    Option{kPartitionOption.name, kPartitionOption.value, "with --before-job: where it runs"},
    Option{kAccountOption.name, kAccountOption.value, "with --before-job: who pays"},
    Option{kTimeOption.name, kTimeOption.value, "with --before-job: its limit, as in 4:00:00"},
    Option{kSbatchOption.name, kSbatchOption.value,
           "with --before-job: any other option of sbatch; may be repeated"},
    Option{kPrintOption.name, "", "with --before-job: show the job script, submit nothing"},
    kShowOption,
    kCleanOption,
    Option{"--all", "", "with --clean: those in use as well"},
    Option{"--older", "TIME", "with --clean: only what is older than that: 12h, 7d"},
    kJobOption,
    kNeededByOption,
    kJsonOption,
    kHelpOption,
};

/// Seconds from "90m", "12h", "7d".
double parse_time(const std::string& text) {
  constexpr std::array<std::pair<char, double>, 4> kUnits = {
      {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}}};
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data(), end, number);
  for (const auto& [letter, seconds] : kUnits) {
    const bool fits = failed == std::errc() && rest + 1 == end && *rest == letter;
    if (fits && number >= 0 && std::isfinite(number)) return number * seconds;
  }
  throw Error(ErrorKind::usage, fmt::format("--older '{}': should be a time such as 90m, 12h or 7d",
                                            printable(text)));
}

/// What each node of the job lists; failures of some are said, and the others' lists count.
StagedList list_nodes(unsigned nodes, const Arguments& arguments, bool& failed,
                      const Progress& progress) {
  std::vector<std::string> words = {"stage", "--list", "--json"};
  for (const std::string& place : arguments.rest()) words.push_back(fs::absolute(place).string());
  StagedList list;
  for (const Json& document : run_on_nodes(nodes, words, progress)) {
    if (!document.contains("error")) {
      add_listed(document, list);
      continue;
    }
    failed = true;
    print_error(fmt::format("stoker: {}: {}\n", printable(document.value("node", "a node")),
                            printable(document["error"].value("message", "failed"))));
  }
  return list;
}

int list_places(const Arguments& arguments, const Progress& progress) {
  const unsigned nodes = nodes_to_stage_on();
  bool all = nodes > 1, failed = false;
  StagedList list;
  try {
    if (all) list = list_nodes(nodes, arguments, failed, progress);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    all = false;
    print_error(
        fmt::format("stoker: only what is staged on {} is listed, one of {} nodes of this job: {}; "
                    "srun --ntasks-per-node=1 stoker stage --list shows each node's\n",
                    printable(node_name()), nodes, error.what()));
  }
  if (!all) list = list_staged(arguments.rest());
  print(arguments.flag(kJsonOption.name) ? to_text(staged_list_document(list))
                                         : staged_list_report(list, all, Style::of_stdout()));
  return failed ? kExitFailed : kExitDone;
}

/// A part of a job, by a name that can be part of a file's.
std::string needed_by(const Arguments& arguments) {
  const std::string name = arguments.value(kNeededByOption.name).value_or("");
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
  });
  constexpr size_t kLongest = 64;
  if (plain && name.size() <= kLongest) return name;
  throw Error(ErrorKind::usage, fmt::format("{} '{}': up to {} letters, digits and -",
                                            kNeededByOption.name, printable(name), kLongest));
}

/// The job whose need for copies ends, where one is named.
std::string ended_job(const Arguments& arguments) {
  const std::string job = arguments.value(kJobOption.name).value_or("");
  if (!job.empty() && job.find_first_not_of("0123456789") != std::string::npos) {
    throw Error(ErrorKind::usage,
                fmt::format("{} '{}': is no number of a job", kJobOption.name, printable(job)));
  }
  return job;
}

/// In the script of a job with several nodes: on each of them.
int clean_nodes(unsigned nodes, const Arguments& arguments, const Progress& progress) {
  std::vector<std::string> words = {"stage", "--clean", "--json"};
  if (arguments.flag("--all")) words.emplace_back("--all");
  if (const auto older = arguments.value("--older")) words.push_back("--older=" + *older);
  for (const std::string& place : arguments.rest()) words.push_back(fs::absolute(place).string());
  const std::vector<Json> documents = run_on_nodes(nodes, words, progress);
  bool failed = false;
  for (const Json& document : documents) failed = failed || document.contains("error");
  print(arguments.flag(kJsonOption.name) ? to_text(cleaned_nodes_document(documents))
                                         : cleaned_nodes_report(documents, Style::of_stdout()));
  return failed ? kExitFailed : kExitDone;
}

int clean_places(const Arguments& arguments, const Progress& progress) {
  CleanOptions options;
  options.job = ended_job(arguments);
  options.run = needed_by(arguments);
  if (!options.run.empty() && options.job.empty()) options.job = own_job();
  options.ended_only = !options.job.empty() || !options.run.empty();
  if (const unsigned nodes = nodes_to_stage_on(); nodes > 1 && !options.ended_only) {
    return clean_nodes(nodes, arguments, progress);
  }
  options.places = arguments.rest();
  options.all = arguments.flag("--all");
  if (const auto older = arguments.value("--older")) options.older_s = parse_time(*older);
  const CleanResult result = clean_staged(options);
  print(arguments.flag(kJsonOption.name) ? to_text(clean_document(result))
                                         : clean_report(result, Style::of_stdout()));
  return kExitDone;
}

void refuse_contradictions(const Arguments& arguments) {
  const bool cleans = arguments.flag(kCleanOption.name), shows = arguments.flag(kShowOption.name);
  if (cleans && shows) throw Error(ErrorKind::usage, "--list and --clean: one of them at a time");
  for (const std::string_view name : {"--all", "--older", "--job"}) {
    if (arguments.flag(name) && !cleans) {
      throw Error(ErrorKind::usage, fmt::format("{}: only together with --clean", name));
    }
  }
  const bool before = arguments.flag(kBeforeJobOption.name);
  const std::vector<std::string>& words = arguments.rest();
  const bool command = words.size() > arguments.rest_before_dashes();
  for (const std::string_view name : {kThenOption.name, kPartitionOption.name, kAccountOption.name,
                                      kTimeOption.name, kSbatchOption.name, kPrintOption.name}) {
    if (arguments.flag(name) && !before) {
      throw Error(ErrorKind::usage,
                  fmt::format("{}: only together with {}", name, kBeforeJobOption.name));
    }
  }
  for (const std::string_view name :
       {"--partial", "--group", "--jobs", "--before-job", "--keep", "--verify"}) {
    if (arguments.flag(name) && (cleans || shows)) {
      throw Error(ErrorKind::usage, fmt::format("{}: nothing is staged here", name));
    }
  }
  if (command && (cleans || shows || before || arguments.flag(kJsonOption.name))) {
    throw Error(ErrorKind::usage,
                fmt::format("'{}': a command runs beside what is staged here and now, and what "
                            "it prints is its own: not together with --list, --clean, "
                            "--before-job or --json",
                            printable(words[arguments.rest_before_dashes()])));
  }
  if (cleans || shows) return;
  if (arguments.rest_before_dashes() == 0) throw Error(ErrorKind::usage, "DATASET is missing");
  if (arguments.rest_before_dashes() > 2) {
    throw Error(ErrorKind::usage, fmt::format("'{}' is one argument too many (a command goes "
                                              "behind --)",
                                              printable(words[2])));
  }
}

/// The same command on each node of the job, which needs the copies as a whole, or for one run.
Json stage_on_nodes(unsigned nodes, const Arguments& arguments, const std::string& run,
                    const Progress& progress) {
  std::vector<std::string> words = staging_words(arguments);
  if (!run.empty()) words.push_back(fmt::format("{}={}", kNeededByOption.name, run));
  words.emplace_back("--json");
  for (size_t i = 0; i < arguments.rest_before_dashes(); ++i) {
    words.push_back(fs::absolute(arguments.rest()[i]).string());
  }
  return nodes_document(run_on_nodes(nodes, words, progress));
}

StageOptions options_of(const Arguments& arguments, Progress& progress) {
  StageOptions options;
  if (arguments.rest_before_dashes() > 1) options.place = arguments.rest()[1];
  options.partial = arguments.flag("--partial");
  options.group = arguments.value("--group").value_or("");
  options.keep = arguments.flag("--keep");
  options.verify = arguments.flag("--verify");
  options.run = needed_by(arguments);
  options.jobs = arguments.jobs();
  options.progress = &progress;
  options.notify = [](const std::string& text) { print_error(fmt::format("stoker: {}\n", text)); };
  return options;
}

/// Runs what stands behind "--", with the path of the copy. Returns its exit status.
int run_beside(const Arguments& arguments, const std::string& path) {
  constexpr std::string_view kHere = "{}";
  const auto first = static_cast<std::ptrdiff_t>(arguments.rest_before_dashes());
  std::vector<std::string> words(arguments.rest().begin() + first, arguments.rest().end());
  for (std::string& word : words) {
    for (size_t at = 0; (at = word.find(kHere, at)) != std::string::npos; at += path.size()) {
      word.replace(at, kHere.size(), path);
    }
  }
  try {
    Child child(words, {{"STOKER_STAGED", path}}, {});
    while (child.running()) {
      pollfd waiting{child.signals(), POLLIN, 0};
      ::poll(&waiting, 1, -1);
      child.take_signals();
    }
    return child.exit_status();
  } catch (const CannotRun& error) {
    print_error(fmt::format("stoker: {}\n", error.what()));
    return error.os_error() == ENOENT ? kExitNotFound : kExitNotExecutable;
  }
}

/// Only a whole copy that is right is trained from.
int refuse_to_run(const std::string& report) {
  print_error(report + "stoker: the command was not run: not all of the dataset is there\n");
  return kExitFailed;
}

/// Whether what is there on each node is what was asked for.
bool all_right(const Json& document) {
  const Json& nodes = document.at("nodes");
  return std::all_of(nodes.begin(), nodes.end(), [](const Json& node) {
    return !node.contains("error") && node.at("faults").empty();
  });
}

int run_on_staged_nodes(unsigned nodes, const Arguments& arguments, const Progress& progress) {
  // The job may need the same copies for something else, or another command of it does.
  const std::string run = fmt::format("{}-{}", ::getpid(), monotonic_ns());
  const Json document = stage_on_nodes(nodes, arguments, run, progress);
  const std::string report = nodes_report(document, Style{});
  std::set<std::string> paths;
  for (const Json& node : document.at("nodes")) {
    if (node.contains("path")) paths.insert(name_from_json(node.at("path").get<std::string>()));
  }
  int status = kExitFailed;
  if (!document.at("complete").get<bool>() || !all_right(document)) {
    status = refuse_to_run(report);
  } else if (paths.size() != 1) {
    print_error(report +
                "stoker: the command was not run: the nodes have chosen different "
                "places; name one that all of them have\n");
  } else {
    print_error(report);
    status = run_beside(arguments, *paths.begin());
  }
  std::vector<std::string> clean = {"stage", "--clean", "--json",
                                    fmt::format("{}={}", kNeededByOption.name, run)};
  if (arguments.rest_before_dashes() > 1) {
    clean.push_back(fs::absolute(arguments.rest()[1]).string());
  }
  try {
    const Progress to_the_end;  // whoever asked to stop asked the command, and waits for this
    run_on_nodes(nodes, clean, to_the_end);
  } catch (const Error& error) {  // what the command did counts
    print_error(fmt::format("stoker: the copies were not removed: {}\n", error.what()));
  }
  return status;
}

int run_on_staged(const Arguments& arguments, Progress& progress) {
  StageOptions options = options_of(arguments, progress);
  // What a job before this one has brought stays for the next.
  if (const auto brought = copy_of_unseen(arguments.rest()[0], options)) {
    print_error(stage_report(*brought, Style{}));
    return run_beside(arguments, brought->target.path);
  }
  options.for_job = false;
  CleanOptions clean;
  int status = kExitFailed;
  {
    Stager stager(arguments.rest()[0], options);
    const StageResult result = [&] {
      const ProgressBar bar(progress);
      return stager.run();
    }();
    clean.places = {result.target.place};
    clean.only = fs::path(result.target.data).parent_path().string();
    const std::string report = stage_report(result, Style{});
    if (result.complete && result.faults.empty()) {
      print_error(report);
      status = run_beside(arguments, result.target.path);
    } else {
      status = refuse_to_run(report);
    }
  }
  clean.ended_only = true;
  clean_staged(clean);
  return status;
}

int run_stage(const Arguments& arguments, Progress& progress) {
  refuse_contradictions(arguments);
  if (arguments.flag(kShowOption.name)) return list_places(arguments, progress);
  if (arguments.flag(kCleanOption.name)) return clean_places(arguments, progress);
  if (arguments.flag(kBeforeJobOption.name)) return stage_before_job(arguments);
  const bool command = arguments.rest().size() > arguments.rest_before_dashes();
  const bool json = arguments.flag(kJsonOption.name);
  if (const unsigned nodes = nodes_to_stage_on(); nodes > 1) {
    if (command) return run_on_staged_nodes(nodes, arguments, progress);
    const Json document = stage_on_nodes(nodes, arguments, needed_by(arguments), progress);
    print(json ? to_text(document) : nodes_report(document, Style::of_stdout()));
    return all_right(document) ? kExitDone : kExitFailed;
  }
  if (command) return run_on_staged(arguments, progress);
  const StageResult result = [&] {
    const ProgressBar bar(progress);
    const MoreOpenFiles more;
    return stage(arguments.rest()[0], options_of(arguments, progress));
  }();
  print(json ? to_text(stage_document(result)) : stage_report(result, Style::of_stdout()));
  return result.faults.empty() ? kExitDone : kExitFailed;
}

}  // namespace

constinit const Command kStageCommand = {
    .name = "stage",
    .summary = "bring a dataset near the GPU: verified, shared, resumable, cleaned up",
    .positionals = kPositionals,
    .description =
        "Copies the dataset to PLACE, a directory on a fast disk or in memory, and verifies every\n"
        "sample on the way; a folder of small files is packed into a few shards there. Without a\n"
        "PLACE: the one of $SLURM_TMPDIR, /scr, /local/scratch, $TMPDIR and /dev/shm that is this\n"
        "node's own and has the most room. What is there already is used again; stopped at any\n"
        "moment and run again, it goes on where it was. Several processes share one copy.\n"
        "With a COMMAND, that is run when all of it is there, {} in it being the path of the "
        "copy,\n"
        "and the copy is removed after it unless somebody else needs it, or --keep is given.\n",
    .options = kOptions,
    .examples =
        "  stoker stage /project/train\n"
        "  stoker stage /project/train /scr --partial\n"
        "  stoker stage photos $SLURM_TMPDIR --json\n"
        "  stoker stage /project/train -- python train.py {}\n"
        "  stoker stage --before-job /archive/train $SCRATCH --then train.sh\n"
        "  stoker stage --list\n"
        "  stoker stage --clean --older 7d /scr\n",
    .resumable = true,
    .run = run_stage,
};

}  // namespace stoker
