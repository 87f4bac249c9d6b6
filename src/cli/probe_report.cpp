// SPDX-License-Identifier: Apache-2.0
#include "cli/probe_report.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"

namespace stoker {
namespace {

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
  if (place.known_as.starts_with('$')) text += fmt::format(" ({})", place.known_as);
  text += ": " + place.purpose + "\n";
  if (place.deleted != "not known") text += "  files deleted: " + place.deleted + "\n";
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
    text += fmt::format("  read: {}, {} to {}, {}\n", counted(read->threads, "thread"),
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
    text += fmt::format("; copied at {} ({})", format_rate(copy->per_s),
                        counted(copy->threads, "thread"));
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

}  // namespace

std::string probe_report(const Machine& machine, const std::vector<std::string>& profiles,
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

}  // namespace stoker
