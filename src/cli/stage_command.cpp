// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/progress_bar.h"
#include "cli/stage_report.h"
#include "results/document.h"
#include "stage/all_nodes.h"
#include "stage/inventory.h"
#include "stage/stage.h"
#include "stage/stage_document.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, 1> kPositionals = {"DATASET [PLACE]"};

constexpr Option kShowOption{"--list", "", "list what is staged at each PLACE instead of staging"};
constexpr Option kCleanOption{"--clean", "", "remove your copies that no job or process uses"};

constexpr std::array kOptions = {
    Option{"--partial", "", "stage what fits; the loader reads the rest from the source"},
    Option{"--group", "GROUP", "let this group read the copy"},
    kJobsOption,
    kShowOption,
    kCleanOption,
    Option{"--all", "", "with --clean: those in use as well"},
    Option{"--older", "TIME", "with --clean: only what is older than that: 12h, 7d"},
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

int list_places(const Arguments& arguments) {
  const std::vector<StagedItem> items = list_staged(arguments.rest());
  print(arguments.flag(kJsonOption.name) ? to_text(staged_list_document(items))
                                         : staged_list_report(items, Style::of_stdout()));
  return kExitDone;
}

int clean_places(const Arguments& arguments) {
  CleanOptions options;
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
  for (const std::string_view name : {"--all", "--older"}) {
    if (arguments.flag(name) && !cleans) {
      throw Error(ErrorKind::usage, fmt::format("{}: only together with --clean", name));
    }
  }
  for (const std::string_view name : {"--partial", "--group", "--jobs"}) {
    if (arguments.flag(name) && (cleans || shows)) {
      throw Error(ErrorKind::usage, fmt::format("{}: nothing is staged here", name));
    }
  }
  if (cleans || shows) return;
  if (arguments.rest().empty()) throw Error(ErrorKind::usage, "DATASET is missing");
  if (arguments.rest().size() > 2) {
    throw Error(ErrorKind::usage,
                fmt::format("'{}' is one argument too many", printable(arguments.rest()[2])));
  }
}

/// The same command on each node of the job.
int stage_on_nodes(unsigned nodes, const Arguments& arguments, const Progress& progress) {
  std::vector<std::string> words = {"stage", "--json"};
  if (arguments.flag("--partial")) words.emplace_back("--partial");
  if (const auto group = arguments.value("--group")) words.push_back("--group=" + *group);
  if (const unsigned jobs = arguments.jobs()) words.push_back(fmt::format("--jobs={}", jobs));
  words.emplace_back("--");
  words.insert(words.end(), arguments.rest().begin(), arguments.rest().end());
  const Json document = nodes_document(run_on_nodes(nodes, words, progress));
  print(arguments.flag(kJsonOption.name) ? to_text(document)
                                         : nodes_report(document, Style::of_stdout()));
  return document.at("verified").get<bool>() ? kExitDone : kExitFailed;
}

int run_stage(const Arguments& arguments, Progress& progress) {
  refuse_contradictions(arguments);
  if (arguments.flag(kShowOption.name)) return list_places(arguments);
  if (arguments.flag(kCleanOption.name)) return clean_places(arguments);
  if (const unsigned nodes = nodes_to_stage_on(); nodes > 1) {
    return stage_on_nodes(nodes, arguments, progress);
  }
  StageOptions options;
  if (arguments.rest().size() > 1) options.place = arguments.rest()[1];
  options.partial = arguments.flag("--partial");
  options.group = arguments.value("--group").value_or("");
  options.jobs = arguments.jobs();
  options.progress = &progress;
  const StageResult result = [&] {
    const ProgressBar bar(progress);
    return stage(arguments.rest()[0], options);
  }();
  print(arguments.flag(kJsonOption.name) ? to_text(stage_document(result))
                                         : stage_report(result, Style::of_stdout()));
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
        "moment and run again, it goes on where it was. Several processes share one copy.\n",
    .options = kOptions,
    .examples =
        "  stoker stage /project/train\n"
        "  stoker stage /project/train /scr --partial\n"
        "  stoker stage photos $SLURM_TMPDIR --json\n"
        "  stoker stage --list\n"
        "  stoker stage --clean --older 7d /scr\n",
    .resumable = true,
    .run = run_stage,
};

}  // namespace stoker
