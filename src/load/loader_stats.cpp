// SPDX-License-Identifier: Apache-2.0
#include "load/loader_stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"

namespace stoker {
namespace {

/// Waiting that nobody minds.
constexpr double kLittle = 0.02;
/// Time between batches that is no training.
constexpr double kHardlyAStep = 0.05;

double share(double part, double all) { return all > 0 ? part / all : 0; }

/// Samples that a core makes in a second.
double rate_per_core(const LoaderStats& stats) {
  const StageTime& stage = stats.pictures ? stats.decode : stats.fetch;
  return share(static_cast<double>(stats.samples), stage.busy);
}

std::string per_second(double rate) {
  return fmt::format("{} samples/s", format_count(static_cast<uint64_t>(std::llround(rate))));
}

/// Cores that would keep up with the step, in words; empty where there is no step to speak of.
std::string cores_for_step(const LoaderStats& stats) {
  const double step = stats.seconds_behind_first - stats.waited_behind_first;
  if (share(step, stats.seconds) < kHardlyAStep || stats.samples_behind_first == 0) {
    return "more cores help";
  }
  const double wanted = static_cast<double>(stats.samples_behind_first) / step;
  const double cores = wanted / rate_per_core(stats);
  const auto more =
      static_cast<int64_t>(std::ceil(cores)) -
      static_cast<int64_t>(stats.pictures ? stats.decode.threads : stats.fetch.threads);
  if (more <= 0) return "a larger `ahead` may help: its speed changes from batch to batch";
  return fmt::format("{} more would feed this step, which takes {}", more, per_second(wanted));
}

}  // namespace

std::string_view limit_of(const LoaderStats& stats) {
  const double waited = share(stats.waited_behind_first, stats.seconds_behind_first);
  // A few batches that were ready together with the first one say nothing about a step.
  const bool steps = share(stats.seconds_behind_first, stats.seconds) >= kHardlyAStep;
  if (stats.samples_behind_first > 0 && steps && waited < kLittle) return "step";
  if (!stats.pictures) return "fetch";
  const double all = stats.decode.busy + stats.decode.waiting_for_input;
  return share(stats.decode.waiting_for_input, all) > 0.5 ? "fetch" : "decode";
}

std::string verdict_of(const LoaderStats& stats, unsigned cores) {
  if (stats.samples == 0) return "nothing was loaded yet";
  const std::string_view limit = limit_of(stats);
  const double elapsed = stats.seconds;
  if (limit == "step") {
    const double ready = 1 - share(stats.waited_behind_first, stats.seconds_behind_first);
    return fmt::format(
        "the step limits: its next batch was ready {:.1f} % of the time; data needs {:.1f} of {} "
        "cores",
        100 * ready, share(stats.fetch.computing + stats.decode.computing, elapsed), cores);
  }
  if (limit == "decode") {
    return fmt::format("decode limits: {:.1f} of {} cores busy, {} each; {}",
                       share(stats.decode.busy, elapsed), cores, per_second(rate_per_core(stats)),
                       cores_for_step(stats));
  }
  const double rate = share(static_cast<double>(stats.bytes), elapsed);
  if (stats.fetch.computing > 0.5 * stats.fetch.busy) {
    return fmt::format("fetch limits: {:.1f} of {} cores busy with copying and checksums, {}; {}",
                       share(stats.fetch.busy, elapsed), cores, format_rate(rate),
                       cores_for_step(stats));
  }
  return fmt::format(
      "fetch limits: the storage gave {} to {} threads; a local disk, RAM (cache=) or fewer, "
      "larger "
      "files (stoker pack) would be faster",
      format_rate(rate), stats.fetch.threads);
}

}  // namespace stoker
