// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/probe_report.h"
#include "cli/progress_bar.h"
#include "os/file_system.h"
#include "os/output_file.h"
#include "probe/probe.h"
#include "results/document.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, 1> kPositionals = {"[PLACE...]"};

constexpr std::array kOptions = {
    Option{"--quick", "", "a rough answer: 256 MiB and 2 seconds for each place"},
    Option{"--bytes", "SIZE", "the most that is written to a place (default: 1GiB)"},
    Option{"--seconds", "N", "how long a place is measured, about (default: 8)"},
    Option{"--threads", "N", "the most threads that read and write at once (default: 16)"},
    Option{"--photos", "DIR", "decode the photos in this folder instead of generated ones"},
    Option{"--only", "PARTS",
           "measure only these of storage,files,copies,memory,decode,gpu\n"
           "(separated by commas)"},
    Option{"--output", "FILE", "write one profile there, not one per place to the user's cache"},
    kJsonOption,
    kHelpOption,
};

void choose_parts(ProbeOptions& options, const std::string& text) {
  const std::array<std::pair<std::string_view, bool*>, 6> parts = {{
      {"storage", &options.storage},
      {"files", &options.files},
      {"copies", &options.copies},
      {"memory", &options.memory},
      {"decode", &options.decode},
      {"gpu", &options.gpu},
  }};
  std::vector<std::string_view> names;
  for (const auto& [name, wanted] : parts) {
    names.push_back(name);
    *wanted = false;
  }
  std::istringstream words(text);
  std::string word;
  while (std::getline(words, word, ',')) {
    const auto found = std::find_if(parts.begin(), parts.end(),
                                    [&](const auto& part) { return part.first == word; });
    if (found == parts.end()) {
      throw Error(ErrorKind::usage,
                  fmt::format("--only '{}': should be some of {}{}", printable(word),
                              fmt::join(names, ","), suggestion(word, names)));
    }
    *found->second = true;
  }
}

ProbeOptions options_of(const Arguments& arguments) {
  constexpr uint64_t kMostSeconds = 3600, kMostThreads = 1024;
  ProbeOptions options;
  options.places = arguments.rest();
  if (arguments.flag("--quick")) {
    options.bytes = 256 << 20;
    options.seconds = 2;
  }
  options.bytes = arguments.size("--bytes").value_or(options.bytes);
  if (options.bytes < kLeastProbeBytes) {
    throw Error(ErrorKind::usage, "--bytes: with less than 8 MiB nothing can be measured");
  }
  if (const auto seconds = arguments.number("--seconds", 1)) {
    options.seconds = static_cast<double>(std::min(*seconds, kMostSeconds));
  }
  options.threads = static_cast<unsigned>(
      std::min(arguments.number("--threads", 1).value_or(options.threads), kMostThreads));
  options.photos = arguments.value("--photos").value_or("");
  const std::string output = arguments.value("--output").value_or("");
  if (const auto info = real_file_system().info(output, true);
      !output.empty() && info && info->kind != FileKind::file) {
    throw Error(ErrorKind::usage,
                fmt::format("--output '{}': should be a file, or nothing yet", printable(output)));
  }
  if (const auto parts = arguments.value("--only")) choose_parts(options, *parts);
  return options;
}

int run_probe(const Arguments& arguments, Progress& progress) {
  const ProbeOptions options = options_of(arguments);
  const Machine machine = [&] {
    const ProgressBar bar(progress);
    return probe(options, progress);
  }();
  std::vector<std::string> profiles;
  if (const auto output = arguments.value("--output")) {
    const std::string text = to_text(to_json(machine));
    write_file(*output, std::as_bytes(std::span(text)));
    profiles.push_back(*output);
  } else {
    profiles = write_profiles(machine, profile_directory());
  }
  print(arguments.flag(kJsonOption.name) ? to_text(probe_document(machine, profiles))
                                         : probe_report(machine, profiles, Style::of_stdout()));
  const bool all = std::all_of(machine.places.begin(), machine.places.end(),
                               [](const Place& place) { return place.problem.empty(); });
  return all || options.places.empty() ? kExitDone : kExitFailed;
}

}  // namespace

constinit const Command kProbeCommand = {
    .name = "probe",
    .summary = "measure this machine: storage, memory, cores, decoding, GPU",
    .positionals = kPositionals,
    .description =
        "Measures each PLACE, a directory, and the machine: in less than a minute, with at most\n"
        "1 GiB written to each and removed again. Without a PLACE: the well-known ones\n"
        "($SCRATCH, $SLURM_TMPDIR, $TMPDIR, $PROJECT, $DATA, $SCRATCH_*, /scr, /local, /dev/shm)\n"
        "and the current directory. Keeps a profile of each in the user's cache.\n",
    .options = kOptions,
    .examples =
        "  stoker probe\n"
        "  stoker probe /scratch/me $TMPDIR\n"
        "  stoker probe --quick --only storage,files .\n"
        "  stoker probe . --photos train --json\n",
    .run = run_probe,
};

}  // namespace stoker
