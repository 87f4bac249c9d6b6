// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "results/run.h"

namespace stoker {

/// The last seconds of a run, as far as its files tell. Of each process only what it trains with
/// counts, as in the summary; an evaluation leaves the figures as they were.
class LiveSteps {
 public:
  /// Takes what the run's processes have written since the last call.
  void update(const RunInfo& info);

  /// Rates of the last updates, the newest last; all ranks together.
  const std::deque<double>& rates() const { return rates_; }
  double per_s() const { return rates_.empty() ? 0 : rates_.back(); }
  bool counts_samples() const { return counts_samples_; }  // otherwise rates are steps a second
  std::optional<double> wait_share() const { return wait_share_; }
  bool any() const { return !rates_.empty(); }
  uint64_t steps() const { return steps_; }  // of a rank, since it began

  /// Whether a process may still add to a file; one on another host may unless it said otherwise.
  bool any_writer_left(const RunInfo& info) const;
  bool any_file() const { return !writers_.empty(); }

 private:
  /// One file of steps.
  struct Writer {
    GrowingFile file;
    StepSeries about;             // without rows
    std::optional<double> first;  // end of its first step
    std::vector<double> seconds;  // of each source
    std::vector<uint64_t> steps;
    uint32_t training = 0;
    unsigned silent = 0;  // updates since it stepped
    // What it trained in the update that brought the last steps.
    double samples = 0, stepped = 0, waited = 0, took = 0;
  };

  bool take(Writer& writer, StepSeries added);
  std::vector<const Writer*> training_now() const;

  std::map<std::string, Writer> writers_;
  std::deque<double> rates_;
  bool counts_samples_ = false;
  std::optional<double> wait_share_;
  uint64_t steps_ = 0;
};

}  // namespace stoker
