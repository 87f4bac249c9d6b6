// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "check/check.h"
#include "cli/check_report.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/output.h"
#include "cli/progress_bar.h"
#include "os/open_file_limit.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, 1> kPositionals = {"DATASET"};

constexpr std::array kOptions = {
    Option{"--quick", "", "look at headers, sizes and names only, not at every byte"},
    Option{"--compare", "OTHER",
           "also prove that OTHER, of any format, holds the same\n"
           "samples: matched by key, in any order; a --list is for\n"
           "DATASET alone"},
    Option{"--ignore-keys", "", "with --compare: match samples by their contents"},
    kJobsOption,
    kListOption,
    kJsonOption,
    kHelpOption,
};

CheckOptions options_of(const Arguments& arguments) {
  CheckOptions options;
  options.quick = arguments.flag("--quick");
  options.compare = arguments.value("--compare").value_or("");
  options.ignore_keys = arguments.flag("--ignore-keys");
  if (options.ignore_keys && options.compare.empty()) {
    throw Error(ErrorKind::usage, "--ignore-keys needs --compare OTHER");
  }
  options.jobs = arguments.jobs();
  options.list = arguments.value("--list").value_or("");
  return options;
}

/// What was named is no dataset, but several: says which there are. Nothing has been verified, so
/// this is no success.
int list_splits(const Arguments& arguments, const SeveralSplits& found) {
  const std::string& path = arguments.positional(0);
  const std::vector<SplitSize> sizes = sizes_of_splits(path, found, arguments.jobs());
  const bool json = arguments.flag(kJsonOption.name);
  print(json ? to_text(splits_document(found.what(), sizes))
             : splits_report(path, sizes, found.other_reading(), Style::of_stdout()));
  if (json) print_error(fmt::format("stoker: {}\n", found.what()));
  return kExitUsage;
}

int run_check(const Arguments& arguments, Progress& progress) try {
  CheckOptions options = options_of(arguments);
  options.progress = &progress;
  const CheckResult result = [&] {
    const ProgressBar bar(progress);
    const MoreOpenFiles more;
    return check(arguments.positional(0), options);
  }();
  print(arguments.flag(kJsonOption.name) ? to_text(check_document(result))
                                         : check_report(result, options, Style::of_stdout()));
  return result.good() ? kExitDone : kExitFailed;
} catch (const SeveralSplits& found) {
  if (arguments.value("--compare")) throw;  // it may be the other one
  return list_splits(arguments, found);
}

}  // namespace

constinit const Command kCheckCommand = {
    .name = "check",
    .summary = "say what a dataset is, verify every byte, name what is corrupt",
    .positionals = kPositionals,
    .description =
        "Shows what DATASET holds (format, fields, sizes, samples per class), then reads every "
        "byte\n"
        "and names each fault with shard, sample, offset and cause. With a full index every byte "
        "is\n"
        "compared with its checksum. Exits 1 when something is wrong. Changes nothing.\n",
    .options = kOptions,
    .examples =
        "  stoker check packed\n"
        "  stoker check packed --compare photos\n"
        "  stoker check packed --quick --json | jq .samples\n",
    .run = run_check,
};

}  // namespace stoker
