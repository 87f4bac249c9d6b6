// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/output.h"
#include "cli/progress_bar.h"
#include "os/output_file.h"
#include "probe/probe.h"

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
  constexpr uint64_t kMostSeconds = 3600, kMostThreads = 1024, kLeastBytes = 8 << 20;
  ProbeOptions options;
  options.places = arguments.positionals();
  if (arguments.flag("--quick")) {
    options.bytes = 256 << 20;
    options.seconds = 2;
  }
  options.bytes = arguments.size("--bytes").value_or(options.bytes);
  if (options.bytes < kLeastBytes) {
    throw Error(ErrorKind::usage, "--bytes: with less than 8 MiB nothing can be measured");
  }
  if (const auto seconds = arguments.number("--seconds", 1)) {
    options.seconds = static_cast<double>(std::min(*seconds, kMostSeconds));
  }
  options.threads = static_cast<unsigned>(
      std::min(arguments.number("--threads", 1).value_or(options.threads), kMostThreads));
  options.photos = arguments.value("--photos").value_or("");
  if (const auto parts = arguments.value("--only")) choose_parts(options, *parts);
  return options;
}

std::string bytes_per_s(const Rate* rate) { return rate ? format_rate(rate->per_s) : "-"; }
std::string count_per_s(const Rate* rate) {
  return rate ? format_count(static_cast<uint64_t>(rate->per_s)) : "-";
}

std::string places_table(const Machine& machine, const Style& style) {
  std::vector<std::vector<std::string>> rows;
  for (const Place& place : machine.places) {
    if (!place.free_bytes) continue;
    rows.push_back({printable(place.path), place.type, format_bytes(*place.free_bytes),
                    bytes_per_s(place.best("read")), bytes_per_s(place.best("write")),
                    count_per_s(place.best("random_read", 4096)), count_per_s(place.best("open")),
                    count_per_s(place.best("create"))});
  }
  if (rows.empty()) return "";
  return table({{"place"},
                {"type"},
                {"free", true},
                {"read", true},
                {"write", true},
                {"random reads/s", true},
                {"opens/s", true},
                {"creates/s", true}},
               rows, style);
}

std::string place_lines(const Place& place, const Style& style) {
  std::string text = style.bold(printable(place.path));
  if (!place.known_as.empty()) text += fmt::format(" ({})", place.known_as);
  text += ": " + place.purpose;
  if (place.deleted != "not known") text += "; files deleted: " + place.deleted;
  text += "\n";
  if (!place.same_as.empty()) {
    return text + fmt::format("  the same file system as {}\n", printable(place.same_as));
  }
  if (place.quota && place.quota->limit_bytes > 0) {
    text += fmt::format("  quota: {} of {}\n", format_bytes(place.quota->used_bytes),
                        format_bytes(place.quota->limit_bytes));
  }
  if (place.stripe) {
    text += fmt::format("  Lustre: new files over {} targets, {} each time\n", place.stripe->count,
                        format_bytes(place.stripe->bytes));
  }
  if (!place.problem.empty()) text += "  " + style.bad(place.problem) + "\n";
  if (const Rate* read = place.best("read")) {
    text += fmt::format("  read: {} threads, {} to {}, {}\n", read->threads,
                        format_rate(read->least), format_rate(read->most), read->how);
  }
  if (place.seconds > 0) {
    text += fmt::format("  wrote {} in {}\n", format_bytes(place.written_bytes),
                        format_duration(place.seconds));
  }
  return text;
}

const Rate* best_of(const std::vector<Rate>& rates, std::string_view what) {
  const Rate* best = nullptr;
  for (const Rate& rate : rates) {
    if (rate.what == what && (best == nullptr || rate.per_s > best->per_s)) best = &rate;
  }
  return best;
}

std::string machine_lines(const Machine& machine) {
  std::string text = fmt::format("cores: {} of {} usable, {}; {} NUMA node{}\n", machine.cores,
                                 machine.machine_cores, machine.cpu, machine.numa.size(),
                                 machine.numa.size() == 1 ? "" : "s");
  text += "memory: " + format_bytes(machine.memory_bytes);
  if (machine.memory_limit_bytes) {
    text +=
        fmt::format(", of which this job may use {}", format_bytes(*machine.memory_limit_bytes));
  }
  if (const Rate* copy = best_of(machine.memory, "copy")) {
    text += fmt::format("; copied at {} ({} threads)", format_rate(copy->per_s), copy->threads);
  }
  if (const Rate* shm = best_of(machine.memory, "shm_read")) {
    text += fmt::format("; /dev/shm read at {}", format_rate(shm->per_s));
  }
  text += "\n";
  if (const auto decode = machine.decode_per_core()) {
    const Rate& all = machine.decode.back();
    text += fmt::format("decode: {:.0f} photos/s on one core, {:.0f} on {}: {}\n", *decode,
                        all.per_s, all.threads, printable(machine.photos));
  }
  for (const Gpu& gpu : machine.gpus) {
    text += fmt::format("GPU: {}, {}; host to GPU {} pinned, {} pageable\n", printable(gpu.name),
                        format_bytes(gpu.memory_bytes), bytes_per_s(best_of(gpu.rates, "pinned")),
                        bytes_per_s(best_of(gpu.rates, "pageable")));
  }
  return text;
}

std::string summary(const Machine& machine, const std::vector<std::string>& profiles,
                    const Style& style) {
  std::string text = places_table(machine, style);
  if (!text.empty()) text += "\n";
  for (const Place& place : machine.places) text += place_lines(place, style);
  for (const CopyRate& copy : machine.copies) {
    text += fmt::format("copy {} to {}: {}\n", printable(copy.from), printable(copy.to),
                        format_rate(copy.rate.per_s));
  }
  text += "\n" + machine_lines(machine);
  for (const std::string& note : machine.notes) text += printable(note) + "\n";
  text += fmt::format("\nmeasured in {}, {} written and removed again\n",
                      format_duration(machine.seconds), format_bytes(machine.written_bytes));
  for (const std::string& path : profiles) text += "profile: " + printable(path) + "\n";
  text += fmt::format("next: {}   does a dataset come as fast as its place can?\n",
                      style.bold("stoker load DATASET --raw --cold"));
  return text;
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
                                         : summary(machine, profiles, Style::of_stdout()));
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
