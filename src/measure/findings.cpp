// SPDX-License-Identifier: Apache-2.0
#include "measure/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/units.h"
#include "os/file_system.h"

namespace stoker {
namespace {

// A run shorter than this says little about what a job needs.
constexpr double kWorthJudging = 10;

void judge_waiting(const RunSummary& summary, std::vector<Finding>& findings) {
  constexpr double kMuch = 0.1;
  if (!summary.wait_share || *summary.wait_share < kMuch) return;
  findings.push_back(
      {fmt::format("{:.0f} % of the time training waits for data", 100 * *summary.wait_share),
       "more workers or cores for loading, a packed dataset (stoker pack), or stoker.Loader; "
       "`stoker load DATASET` says what limits"});
}

void judge_cores(const Run& run, std::vector<Finding>& findings) {
  const RunInfo& info = run.info;
  const double load = info.cpu_s / info.seconds;
  if (info.cores < 2 || load > 0.5 * info.cores) return;
  const double needed = std::max(1.0, std::ceil(load * 1.2));
  if (needed >= info.cores) return;
  findings.push_back(
      {fmt::format("{} cores were there, {:.1f} were used", info.cores, load),
       fmt::format("--cpus-per-task={:.0f}, or more threads or workers that use them", needed)});
}

void judge_threads(const Run& run, std::vector<Finding>& findings) {
  uint64_t threads = 0;
  for (const ResourceSample& sample : run.resources) threads = std::max(threads, sample.threads);
  const RunInfo& info = run.info;
  const double load = info.cpu_s / info.seconds;
  constexpr uint64_t kIdleOnes = 16;  // frameworks keep some that do nothing
  if (load < 0.9 * info.cores || threads <= 2 * uint64_t{info.cores} + kIdleOnes) return;
  findings.push_back(
      {fmt::format("{} threads share {} cores, and all cores are busy", threads, info.cores),
       fmt::format("OMP_NUM_THREADS={0} and no more than {0} loader workers in all",
                   std::max(info.cores, 1U))});
}

void judge_memory(const Run& run, std::vector<Finding>& findings) {
  const RunInfo& info = run.info;
  if (info.memory_limit == 0) return;
  const double share =
      static_cast<double>(info.peak_memory) / static_cast<double>(info.memory_limit);
  constexpr double kTight = 0.9;
  constexpr double kLoose = 0.3;
  constexpr uint64_t kGibi = uint64_t{1} << 30;
  const uint64_t wanted =
      static_cast<uint64_t>(static_cast<double>(info.peak_memory) * 1.3) / kGibi + 1;
  if (share > kTight) {
    findings.push_back({fmt::format("memory came to {:.0f} % of its limit of {}", 100 * share,
                                    format_bytes(info.memory_limit)),
                        fmt::format("--mem={}G, or smaller batches or fewer workers", wanted)});
  } else if (share < kLoose && wanted * kGibi < info.memory_limit / 2) {
    findings.push_back(
        {fmt::format("{} of memory were there, {} were used at most",
                     format_bytes(info.memory_limit), format_bytes(info.peak_memory)),
         fmt::format("--mem={}G", wanted)});
  }
}

void judge_gpus(const Run& run, std::vector<Finding>& findings) {
  double sum = 0;
  size_t count = 0;
  for (const ResourceSample& sample : run.resources) {
    if (sample.gpu_busy < 0) continue;
    sum += sample.gpu_busy;
    ++count;
  }
  constexpr double kIdle = 0.3;
  if (count == 0 || sum / static_cast<double>(count) > kIdle) return;
  findings.push_back({fmt::format("the visible GPUs were busy {:.0f} % of the time",
                                  100 * sum / static_cast<double>(count)),
                      "fewer GPUs, larger batches, or what the other findings say"});
}

/// The options of `python` that keep it from importing the hook: those among -E, -I and -S in the
/// words behind it, up to the script.
std::string ignoring_options(const std::vector<std::string>& command) {
  std::string found;
  const auto is_python = [](const std::string& word) {
    const std::string name = word.substr(word.find_last_of('/') + 1);
    return name.starts_with("python") &&
           name.find_first_not_of("0123456789.", 6) == std::string::npos;
  };
  auto word = std::find_if(command.begin(), command.end(), is_python);
  if (word == command.end()) return found;
  while (++word != command.end() && word->size() > 1 && word->front() == '-') {
    if (word->starts_with("--")) continue;
    for (size_t i = 1; i < word->size(); ++i) {
      const char letter = (*word)[i];
      if (letter == 'c' || letter == 'm') return found;  // the program begins
      if (letter == 'E' || letter == 'I' || letter == 'S') found += letter;
      if (letter != 'W' && letter != 'X') continue;
      if (i + 1 == word->size() && std::next(word) != command.end()) ++word;  // takes the next word
      break;
    }
  }
  return found;
}

}  // namespace

std::optional<Finding> hook_was_ignored(const Run& run, const RunSummary& summary) {
  if (!summary.source.empty()) return std::nullopt;
  const std::string options = ignoring_options(run.info.command);
  // Without the hook's directory nobody wanted to watch it.
  if (options.empty() || !real_file_system().info(run.info.directory + "/hook", true)) {
    return std::nullopt;
  }
  const bool path = options.find_first_of("EI") != std::string::npos;
  return Finding{
      fmt::format("no steps were seen: python -{} ignores {}, by which stoker time "
                  "watches it",
                  options, path ? "PYTHONPATH" : "sitecustomize"),
      fmt::format("run it without -{}, or let the script say its steps (stoker.watch)", options)};
}

std::vector<Finding> find_what_to_change(const Run& run, const RunSummary& summary) {
  std::vector<Finding> findings;
  if (auto ignored = hook_was_ignored(run, summary)) findings.push_back(std::move(*ignored));
  judge_waiting(summary, findings);
  if (!run.info.ended || run.info.seconds < kWorthJudging) return findings;
  judge_cores(run, findings);
  judge_threads(run, findings);
  judge_memory(run, findings);
  judge_gpus(run, findings);
  return findings;
}

}  // namespace stoker
