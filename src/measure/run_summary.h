// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/interval.h"
#include "measure/steady_state.h"
#include "results/run.h"

namespace stoker {

/// Something to change, and how.
struct Finding {
  std::string what;
  std::string change;
};

/// One process that trained.
struct RankSummary {
  uint32_t rank = 0;
  std::string host;
  uint64_t steps = 0, samples = 0;
  double mean_step_s = 0;  // waiting included
  double lag_s = 0;        // how much later than the first rank it ends a step, on the same host
  double wait_share = 0;
};

/// What a run says. Figures are of the steady part where there is one, else of all steps.
struct RunSummary {
  std::string source;  // what the steps were taken from: "DataLoader(…)", "--pattern"; else empty
  uint64_t steps = 0, samples = 0, epochs = 0;
  bool counts_samples = false;  // otherwise rates are steps a second
  std::optional<Interval> samples_per_s;
  std::optional<double> wait_share;  // nothing where waiting cannot be told from the step
  std::optional<double> gpu_share;   // of a step's time, between the first and last thing it did
  SteadyState steady;
  std::optional<double> steady_from_s;      // seconds after the begin of the run
  std::optional<double> steady_from_epoch;  // in epochs, where their length is known
  std::optional<Distribution> step_s;       // of the steady part
  std::vector<std::string> events;  // "every 500 steps one takes 3.1 s: checkpoint (torch.save)"
  std::vector<RankSummary> ranks;
  std::optional<size_t> straggler;  // of ranks
  std::vector<Finding> findings;
};

RunSummary summarise(const Run& run);

/// Nothing where one of them has no rate, or one counts samples and the other only steps.
std::optional<RateComparison> compare(const RunSummary& run, const RunSummary& baseline);

/// Which of the things that one process iterated over it trains with, by the time that each took:
/// what the script says itself goes before what the hook saw, training before evaluation, and then
/// the one that took the most. Nothing where none took any.
std::optional<uint32_t> training_source(const std::vector<StepSource>& sources,
                                        const std::vector<double>& seconds);

/// The steps of the loader that one process takes its batches from; points into the run.
struct TrainingSteps {
  const StepSeries* series = nullptr;
  uint32_t source = 0;
  std::vector<const StepSeries::Row*> rows;
};
/// Those that the summary is about: of each process that trained, in the order of ranks.
std::vector<TrainingSteps> training_steps(const Run& run);

/// Why a run has no steady state, in words.
std::string cause_in_words(SteadyState::Cause cause);
std::string_view name_of(SteadyState::Kind kind);
/// "warm-up: steady from step 31, 2.1 s after the start"
std::string steady_in_words(const RunSummary& summary);

}  // namespace stoker
