// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/output.h"
#include "cli/progress_bar.h"
#include "cli/slurm_failures.h"
#include "cli/slurm_jobs.h"
#include "dataset/index.h"
#include "format/format.h"
#include "os/open_file_limit.h"
#include "pack/pack.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, 2> kPositionals = {"SRC", "DST"};

constexpr std::array kOptions = {
    Option{"--to", "FORMAT",
           "format to write: tar (default), tfrecord, hdf5, lmdb, arrow,\n"
           "feather or npy"},
    Option{"--shard-size", "SIZE", "begin a new shard at this size (default: 1G)"},
    kJobsOption,
    Option{"--shuffle", "SEED", "put the samples in a random order: the same for the same seed"},
    Option{"--split", "SHARES",
           "one dataset per name, chosen by a hash of the key so that\n"
           "samples stay where they are when data is added"},
    Option{"--include", "GLOB", "only samples whose key or file names match; may be repeated"},
    Option{"--exclude", "GLOB", "leave matching ones out; may be repeated, wins over --include"},
    Option{"--limit", "N", "at most N samples, counted after the filters"},
    kListOption,
    Option{"--lossy", "", "leave out fields that the format cannot store"},
    Option{"--compress", "NAME", "compress what is stored, where the format can"},
    kRowIndexOption,
    Option{"--overwrite", "", "replace a dataset of other contents at DST"},
    Option{"--skip-bad", "", "what cannot be read is left out and still exit 0"},
    Option{"--plan", "", "only settle which sample goes into which shard"},
    Option{"--part", "K/N", "write part K of N of a plan; without it, the rest and the index"},
    kSlurmOption,
    Option{"--tasks", "N", "with --slurm: jobs that write shards side by side (default: 4)"},
    kPartitionOption,
    kAccountOption,
    kTimeOption,
    kSbatchOption,
    kPrintOption,
    kNoWaitOption,
    kJsonOption,
    kHelpOption,
};

/// "2/4".
PackPart part_of(const std::string& text) {
  PackPart part;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, part.number);
  const bool slash = first.ec == std::errc() && first.ptr != end && *first.ptr == '/';
  const auto second = std::from_chars(slash ? first.ptr + 1 : end, end, part.of);
  if (!slash || second.ec != std::errc() || second.ptr != end || part.number < 1 ||
      part.number > part.of) {
    throw Error(
        ErrorKind::usage,
        fmt::format("--part '{}': should be as in 2/4, the second of four", printable(text)));
  }
  return part;
}

PackOptions options_of(const Arguments& arguments) {
  PackOptions options;
  std::vector<std::string_view> writable;
  for (const Format& format : formats()) {
    if (format.write != nullptr) writable.push_back(format.name);
  }
  options.to = arguments.choice("--to", writable).value_or(options.to);
  options.shard_size = arguments.size("--shard-size").value_or(options.shard_size);
  options.jobs = arguments.jobs();
  options.shuffle = arguments.number("--shuffle", 0);
  if (const auto split = arguments.value("--split")) options.split = parse_split(*split);
  options.include = arguments.values("--include");
  options.exclude = arguments.values("--exclude");
  options.limit = arguments.number("--limit", 1);
  options.list = arguments.value("--list").value_or("");
  options.lossy = arguments.flag("--lossy");
  options.compress = arguments.value("--compress").value_or("");
  options.row_index = parse_row_index(arguments.value(kRowIndexOption.name).value_or("rows"));
  options.overwrite = arguments.flag("--overwrite");
  options.skip_bad = arguments.flag("--skip-bad");
  options.plan_only = arguments.flag("--plan");
  if (const auto part = arguments.value("--part")) options.part = part_of(*part);
  if (options.plan_only && options.part) {
    throw Error(ErrorKind::usage, "--plan and --part: the plan first, then its parts");
  }
  return options;
}

std::string headline(const PackResult& result, const Style& style) {
  const std::string what = fmt::format(
      "{} {} {}, {}", counted(result.samples, "sample"), result.already_complete ? "in" : "into",
      counted_shards(result.shards, result.format), format_bytes(result.bytes));
  if (result.already_complete) {
    return style.good("already packed") + ": " + what +
           "; the source has the same samples of the same sizes, and is not newer\n";
  }
  std::string text =
      fmt::format("{} {} in {}", style.good("packed"), what, format_duration(result.seconds));
  if (result.shards_reused > 0) {
    text +=
        fmt::format(" ({} of an earlier run used again)", counted(result.shards_reused, "shard"));
  } else if (result.seconds > 0) {
    text += fmt::format(" ({})", format_rate(static_cast<double>(result.bytes) / result.seconds));
  }
  return text + "\n";
}

std::string unfinished(const PackResult& result, const Style& style) {
  const std::string shards = counted_shards(result.shards, result.format);
  if (result.samples == 0) {
    return fmt::format("{}: {}; next: --part 1/N to N/N, then the same command without either\n",
                       style.good("planned"), shards);
  }
  return fmt::format("{} {} into {} in {}; the command without --part completes the dataset\n",
                     style.good("packed"), counted(result.samples, "sample"), shards,
                     format_duration(result.seconds));
}

/// What an earlier run could not read, and whether it can be read now.
std::string tried_again(const PackResult& result, const Style& style) {
  if (result.retried == 0) return "";
  const uint64_t still = count_transient(result.left_out);
  return fmt::format("{} left out when packed before (I/O error): tried again, {}\n",
                     format_count(result.retried),
                     still == 0 ? "all could be read"
                                : style.bad(format_count(still) + " still could not be read"));
}

std::string left_out(const PackResult& result, const Style& style) {
  std::vector<std::string> parts;
  if (!result.lossy.empty()) {
    parts.push_back(counted(result.lossy.size(), "field") + " that the format cannot store");
  }
  if (result.filtered > 0) parts.push_back(counted(result.filtered, "sample") + " by your filters");
  if (result.hidden > 0) parts.push_back(counted(result.hidden, "hidden file"));
  if (result.unlisted > 0) {
    parts.push_back(unlisted_files(result.unlisted, result.source_format));
  }
  if (!result.unused.empty()) parts.push_back(unused_datasets(result.unused));
  if (!result.left_out.empty()) {
    // A shard that is missing has nobody knows how many samples.
    const bool by_sample = std::all_of(result.left_out.begin(), result.left_out.end(),
                                       [](const Fault& fault) { return !fault.sample.empty(); });
    const std::string faults = by_sample
                                   ? format_count(result.left_out.size()) + " because of faults"
                                   : counted(result.left_out.size(), "fault") + " of the source";
    parts.push_back(style.bad(faults) + ":");
  }
  if (parts.empty()) return "left out: nothing\n";
  return fmt::format("left out: {}\n{}", fmt::join(parts, ", "),
                     list_faults(result.left_out, result.left_out.size(), style));
}

// The datasets as the user would name them: the library gives their real paths.
std::vector<std::string> shown_datasets(const Arguments& arguments, const PackOptions& options) {
  std::string destination = arguments.positional(1);
  while (destination.size() > 1 && destination.back() == '/') destination.pop_back();
  if (options.split.empty()) return {destination};
  std::vector<std::string> shown;
  for (const auto& [name, share] : options.split) shown.push_back(destination + "/" + name);
  return shown;
}

std::string summary(const PackResult& result, const std::vector<std::string>& shown,
                    const Style& style) {
  if (result.unfinished) return unfinished(result, style);
  std::string text = headline(result, style);
  for (size_t i = 0; i < shown.size(); ++i) {
    text += fmt::format("index: full (every sample has a checksum), in {}/{}", printable(shown[i]),
                        kIndexDirectory);
    if (shown.size() > 1) {
      const Index index(result.datasets.at(i) + "/" + kIndexDirectory);
      text += fmt::format(": {}", counted(index.size(), "sample"));
    }
    text += "\n";
  }
  text += row_index_line(result.row_index);
  for (const std::string& loss : result.lossy) text += style.bad(loss) + "\n";
  text += tried_again(result, style);
  text += left_out(result, style);
  return text + next_steps("stoker check", "verify every byte", shown.front(), style);
}

/// A plan, an array of jobs that write its parts, and a last one that submits again what failed,
/// then completes the dataset.
int pack_by_jobs(const Arguments& arguments, Progress& progress) {
  constexpr int kAttempts = 3;
  const uint64_t tasks = arguments.number("--tasks", 1).value_or(4);
  const std::string directory = new_jobs_directory("pack");
  const std::string destination = std::filesystem::absolute(arguments.positional(1)).string();
  std::vector<std::string> words = same_command("pack", arguments, kOptions);
  for (const char* const own : {"--tasks", "--json"}) {
    std::erase_if(words, [&](const std::string& word) { return word.starts_with(own); });
  }
  words.emplace_back("--");
  words.push_back(std::filesystem::absolute(arguments.positional(0)).string());
  words.push_back(destination);
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> line = words;
    line.insert(line.begin() + 2, more.begin(), more.end());
    return line;
  };
  const auto file = [&](const char* name) { return shell_quoted(directory + "/" + name); };
  const std::string plan_path = shell_quoted(destination + "/" + kIndexDirectory + "/pack");
  // Samples that cannot be read are a failure that the last job reports: none of these, whose work
  // is there.
  const auto unless = [](const std::string& work) {
    return fmt::format(" || {{ status=$?; [[ -e {} ]] || exit \"$status\"; }}\n", work);
  };
  PlannedJob plan{script_for(arguments, "stoker-pack-plan", directory), ""};
  plan.script.body = shell_quoted(with({"--plan"})) + unless(plan_path);
  PlannedJob part{script_for(arguments, "stoker-pack-part", directory), "afterok"};
  part.script.array = fmt::format("1-{}", tasks);
  part.script.request.cpus = arguments.number("--jobs", 1).value_or(0);
  part.script.body = fmt::format("{} --part=\"$SLURM_ARRAY_TASK_ID/{}\" {}",
                                 shell_quoted(std::vector(words.begin(), words.begin() + 2)), tasks,
                                 shell_quoted(std::vector(words.begin() + 2, words.end()))) +
                     unless(fmt::format("{}/part-$SLURM_ARRAY_TASK_ID-of-{}", plan_path, tasks));
  PlannedJob last{script_for(arguments, "stoker-pack-finish", directory), "afterany"};
  last.script.request.cpus = part.script.request.cpus;
  last.script.body = fmt::format(
      "left=\nfor k in $(seq {0}); do [[ -e {1}/part-$k-of-{0} ]] || left+=${{left:+,}}$k; done\n"
      "if [[ -d {1} && -n $left && ${{1:-1}} -lt {2} ]]; then\n"
      "  again=$(sbatch --parsable --array=\"$left\" {3})\n  echo \"$again\" >>{5}\n"
      "  sbatch --parsable --dependency=\"afterany:${{again%%;*}}\" {4} $((${{1:-1}} + 1)) >>{5}\n"
      "  exit\nfi\n",
      tasks, plan_path, kAttempts, file("stoker-pack-part.sh"), file("stoker-pack-finish.sh"),
      file("jobs"));
  last.script.body += body_with_result(
      directory, with(arguments.flag(kJsonOption.name) ? std::vector<std::string>{"--json"}
                                                       : std::vector<std::string>()));
  const int status = run_jobs("pack", directory, {plan, part, last}, arguments, progress,
                              [&] { count_packed(destination, progress); });
  if (status != kExitDone) {
    // Samples that could not be read are in what was printed; those before it may have run again.
    const JobFailure failure = first_failure({jobs_of(directory).back()}, directory);
    if (failure.has_cause) print_error(fmt::format("stoker: {}\n", failure.why));
  }
  return status;
}

int run_pack(const Arguments& arguments, Progress& progress) {
  if (arguments.flag(kSlurmOption.name)) return pack_by_jobs(arguments, progress);
  PackOptions options = options_of(arguments);
  options.progress = &progress;
  const PackResult result = [&] {
    const ProgressBar bar(progress);
    const MoreOpenFiles more;
    return pack(arguments.positional(0), arguments.positional(1), options);
  }();
  print(arguments.flag(kJsonOption.name)
            ? to_text(pack_document(result))
            : summary(result, shown_datasets(arguments, options), Style::of_stdout()));
  return result.left_out.empty() || options.skip_bad ? kExitDone : kExitFailed;
}

}  // namespace

constinit const Command kPackCommand = {
    .name = "pack",
    .summary = "turn a folder, or any dataset, into shards; resumable, parallel",
    .positionals = kPositionals,
    .description =
        "Writes the samples at SRC (a folder, tar, tfrecord, hdf5, lmdb, arrow, feather, parquet "
        "or\n"
        "npy dataset) into a few large files in the directory DST, with a full index: random\n"
        "access, and a checksum for every sample. Original bytes are kept. Stopped at any moment\n"
        "and run again, it goes on where it was.\n",
    .options = kOptions,
    .examples =
        "  stoker pack photos packed\n"
        "  stoker pack photos packed --to tfrecord --shard-size 256M --shuffle 1\n"
        "  stoker pack photos packed --split 'train=0.9,val=0.1' --exclude '*_draft*'\n"
        "  stoker pack photos packed --list labels.csv --limit 1000\n"
        "  stoker pack data.h5::train packed --to arrow\n"
        "  stoker pack photos packed --slurm --tasks 16 --partition cpu --time 2:00:00\n",
    .resumable = true,
    .run = run_pack,
};

}  // namespace stoker
