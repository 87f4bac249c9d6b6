// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <chrono>

#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/output.h"
#include "cli/progress_bar.h"
#include "index/build_index.h"
#include "os/open_file_limit.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, 1> kPositionals = {"DATASET"};

constexpr std::array kOptions = {
    Option{"--full", "", "read every byte and record checksums (default: structure only)"},
    Option{"--where", "PLACE",
           "beside: in .stoker next to the data; cache: in your cache\n"
           "(default: beside where that can be written)"},
    kRowIndexOption,
    kJobsOption,
    kListOption,
    kJsonOption,
    kHelpOption,
};

IndexOptions options_of(const Arguments& arguments) {
  constexpr std::array<std::string_view, 2> kPlaces = {"beside", "cache"};
  IndexOptions options;
  if (arguments.flag("--full")) options.depth = Depth::full;
  if (const auto where = arguments.choice("--where", kPlaces)) {
    options.where = *where == "cache" ? IndexWhere::cache : IndexWhere::beside;
  }
  options.row_index = parse_row_index(arguments.value(kRowIndexOption.name).value_or("rows"));
  options.jobs = arguments.jobs();
  options.list = arguments.value("--list").value_or("");
  return options;
}

std::string summary(const IndexResult& result, const std::string& dataset, double seconds,
                    const Style& style) {
  std::string text =
      fmt::format("{} {} in {}, {}, in {}", style.good("indexed"),
                  counted(result.samples, "sample"), counted_shards(result.shards, result.format),
                  format_bytes(result.bytes), format_duration(seconds));
  if (result.segments_reused > 0) {
    text += fmt::format(" ({} unchanged and used again)", counted(result.segments_reused, "part"));
  }
  const bool full = result.depth == Depth::full;
  text +=
      fmt::format("\nindex: {}, in {}{}\n",
                  full ? "full (every sample has a checksum)" : "structure (no checksums)",
                  shown_within(result.directory, dataset), result.in_cache ? " (your cache)" : "");
  text += row_index_line(result.row_index);
  if (result.hidden > 0) {
    text += fmt::format("left out: {}\n", counted(result.hidden, "hidden file"));
  }
  if (!result.unused.empty()) {
    text += fmt::format("not read: {}\n", unused_datasets(result.unused));
  }
  if (result.unlisted > 0) {
    text += fmt::format("left out: {}\n", unlisted_files(result.unlisted, result.format));
  }
  if (!result.faults.empty()) {
    text += style.bad(counted(result.faults.size(), "fault")) + ":\n" +
            list_faults(result.faults, result.faults.size(), style);
  }
  return text + (full ? next_steps("stoker check", "verify every byte", dataset, style)
                      : next_steps("stoker index --full", "add checksums", dataset, style));
}

int run_index(const Arguments& arguments, Progress& progress) {
  IndexOptions options = options_of(arguments);
  options.progress = &progress;
  const std::string& dataset = arguments.positional(0);
  const auto begin = std::chrono::steady_clock::now();
  const IndexResult result = [&] {
    const ProgressBar bar(progress);
    const MoreOpenFiles more;
    return build_index(dataset, options);
  }();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  print(arguments.flag(kJsonOption.name)
            ? to_text(index_document(result, elapsed.count()))
            : summary(result, dataset, elapsed.count(), Style::of_stdout()));
  return result.faults.empty() ? kExitDone : kExitFailed;
}

}  // namespace

constinit const Command kIndexCommand = {
    .name = "index",
    .summary = "give an existing dataset random access without rewriting it",
    .positionals = kPositionals,
    .description =
        "Finds where every sample of DATASET is (a folder, shards in a directory, or one shard)\n"
        "and records it in an index, which opens in an instant. Shards are not changed. Run "
        "again,\n"
        "it looks only at what is new or has changed.\n",
    .options = kOptions,
    .examples =
        "  stoker index shards\n"
        "  stoker index shards --full\n"
        "  stoker index /data/readonly/train.tar --where cache\n",
    .resumable = true,
    .run = run_index,
};

}  // namespace stoker
