// SPDX-License-Identifier: Apache-2.0
#include "measure/run_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/units.h"
#include "measure/findings.h"

namespace stoker {
namespace {

using Row = StepSeries::Row;

TrainingSteps training_of(const StepSeries& series) {
  std::vector<double> seconds(series.sources.size(), 0);
  for (const Row& row : series.rows) {
    if (row.kind == StepSeries::Kind::step) seconds[row.source] += row.duration_s();
  }
  TrainingSteps training;
  training.series = &series;
  const std::optional<uint32_t> source = training_source(series.sources, seconds);
  if (!source) return training;
  training.source = *source;
  for (const Row& row : series.rows) {
    if (row.source == training.source && row.kind == StepSeries::Kind::step) {
      training.rows.push_back(&row);
    }
  }
  return training;
}

RankSummary rank_of(const TrainingSteps& training) {
  RankSummary rank;
  rank.rank = training.series->rank;
  rank.host = training.series->host;
  double waited = 0;
  double all = 0;
  for (const Row* row : training.rows) {
    rank.samples += row->samples;
    waited += row->wait_s;
    all += row->duration_s();
  }
  rank.steps = training.rows.size();
  rank.mean_step_s = all / static_cast<double>(std::max<uint64_t>(rank.steps, 1));
  rank.wait_share = all > 0 ? waited / all : 0;
  return rank;
}

/// How much later than the first of its host each rank ends its steps: in training that waits for
/// all ranks, whoever is late then does more than the others behind the common point.
void measure_lag(const std::vector<TrainingSteps>& trainings, std::vector<RankSummary>& ranks) {
  size_t steps = trainings.empty() ? 0 : trainings.front().rows.size();
  for (const TrainingSteps& each : trainings) {
    steps = std::min(steps, each.rows.size());
    if (each.series->host != trainings.front().series->host) return;  // clocks differ
  }
  for (size_t i = 0; i < steps; ++i) {
    double first = trainings.front().rows[i]->end_s;
    for (const TrainingSteps& each : trainings) first = std::min(first, each.rows[i]->end_s);
    for (size_t r = 0; r < trainings.size(); ++r) {
      ranks[r].lag_s += (trainings[r].rows[i]->end_s - first) / static_cast<double>(steps);
    }
  }
}

/// The rank that holds up the others: the slowest, or, where all wait for each other in every step
/// and so are equally slow, the one that waits for data longest, or ends its steps last.
std::optional<size_t> straggler_of(const std::vector<RankSummary>& ranks) {
  if (ranks.size() < 2) return std::nullopt;
  const auto by_time =
      std::max_element(ranks.begin(), ranks.end(),
                       [](const auto& a, const auto& b) { return a.mean_step_s < b.mean_step_s; });
  std::vector<double> times;
  std::vector<double> waits;
  for (const RankSummary& rank : ranks) {
    times.push_back(rank.mean_step_s);
    waits.push_back(rank.wait_share);
  }
  const auto median = [](std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<long>((values.size() - 1) / 2),
                     values.end());
    return values[(values.size() - 1) / 2];
  };
  constexpr double kSlower = 1.05;
  constexpr double kMoreWaiting = 0.05;
  if (by_time->mean_step_s > kSlower * median(times)) {
    return static_cast<size_t>(by_time - ranks.begin());
  }
  const auto by_wait =
      std::max_element(ranks.begin(), ranks.end(),
                       [](const auto& a, const auto& b) { return a.wait_share < b.wait_share; });
  if (by_wait->wait_share > median(waits) + kMoreWaiting) {
    return static_cast<size_t>(by_wait - ranks.begin());
  }
  const auto by_lag = std::max_element(
      ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return a.lag_s < b.lag_s; });
  if (by_lag->lag_s > kMoreWaiting * by_lag->mean_step_s) {
    return static_cast<size_t>(by_lag - ranks.begin());
  }
  return std::nullopt;
}

/// Names what comes again: a checkpoint that was saved in these steps, or the begin of an epoch.
std::vector<std::string> name_events(const TrainingSteps& training, const SteadyState& steady) {
  std::vector<std::string> events;
  std::vector<const Row*> marks;  // in the order of their ends
  for (const Row& row : training.series->rows) {
    if (row.kind == StepSeries::Kind::mark) marks.push_back(&row);
  }
  const auto by_end = [](const Row* mark, double end) { return mark->end_s < end; };
  std::sort(marks.begin(), marks.end(),
            [](const Row* a, const Row* b) { return a->end_s < b->end_s; });
  for (const Periodic& each : steady.periodic) {
    size_t saved = 0;
    size_t epoch_begins = 0;
    size_t count = 0;
    std::string saver;
    for (size_t i = each.first; i < training.rows.size(); i += each.period) {
      ++count;
      const Row& row = *training.rows[i];
      if (i == 0 || training.rows[i - 1]->epoch != row.epoch) ++epoch_begins;
      // The last mark that ended within this step.
      const auto behind = std::lower_bound(marks.begin(), marks.end(), row.end_s + 1e-3, by_end);
      if (behind != marks.begin() && (*std::prev(behind))->begin_s() > row.begin_s() - 1e-3) {
        ++saved;
        saver = training.series->sources[(*std::prev(behind))->source].name;
      }
    }
    const std::string why = 2 * saved > count          ? saver
                            : 2 * epoch_begins > count ? std::string("an epoch begins")
                                                       : std::string("cause not seen");
    events.push_back(fmt::format("every {} steps one takes {}: {}", each.period,
                                 format_duration(each.seconds), why));
  }
  return events;
}

/// Evaluations and checkpoints between the steps, by what was iterated over or marked there.
std::vector<std::string> between_steps(const TrainingSteps& training) {
  std::map<uint32_t, std::pair<size_t, double>> found;
  for (const Row& row : training.series->rows) {
    if (row.source == training.source) continue;
    auto& [count, seconds] = found[row.source];
    seconds += row.duration_s();
    const bool mark = row.kind == StepSeries::Kind::mark;
    if (mark || row.kind == StepSeries::Kind::end_of_epoch) ++count;
  }
  std::vector<std::string> events;
  for (const auto& [source, sum] : found) {
    const StepSource& what = training.series->sources[source];
    if (sum.second < 1e-3) continue;
    events.push_back(fmt::format("{} took {} in {}", what.name, format_duration(sum.second),
                                 sum.first == 1 ? "1 turn" : fmt::format("{} turns", sum.first)));
  }
  return events;
}

/// The rates of all ranks from a step on, added: the same as samples by time where they go in step,
/// and right where they do not.
std::optional<Interval> rate_of(const std::vector<TrainingSteps>& trainings, size_t from,
                                bool counts_samples) {
  std::optional<Interval> sum;
  for (const TrainingSteps& each : trainings) {
    std::vector<double> seconds;
    std::vector<double> samples;
    for (size_t i = from; i < each.rows.size(); ++i) {
      seconds.push_back(each.rows[i]->duration_s());
      samples.push_back(counts_samples ? static_cast<double>(each.rows[i]->samples) : 1.0);
    }
    const std::optional<Interval> own = throughput_interval(samples, seconds);
    if (!own) continue;
    if (!sum) {
      sum = own;
    } else if (counts_samples) {  // steps are common to the ranks
      sum = Interval{sum->value + own->value, sum->low + own->low, sum->high + own->high};
    }
  }
  return sum;
}

void take_steps(const std::vector<TrainingSteps>& trainings, RunSummary& summary) {
  const TrainingSteps& first = trainings.front();
  const StepSource& source = first.series->sources[first.source];
  summary.source = source.name;
  size_t steps = first.rows.size();
  for (const TrainingSteps& each : trainings) steps = std::min(steps, each.rows.size());
  std::vector<double> seconds;
  std::vector<size_t> boundaries;
  for (size_t i = 0; i < steps; ++i) {
    seconds.push_back(first.rows[i]->duration_s());
    if (i > 0 && first.rows[i]->epoch != first.rows[i - 1]->epoch) boundaries.push_back(i);
  }
  summary.steps = steps;
  for (const TrainingSteps& each : trainings) {
    for (const Row* row : each.rows) summary.samples += row->samples;
  }
  summary.counts_samples = summary.samples > 0;
  summary.epochs = boundaries.size() + (steps > 0 ? 1 : 0);
  summary.steady = steady_state(seconds, boundaries);
  const size_t from = summary.steady.kind == SteadyState::Kind::none ? 0 : summary.steady.from_step;
  if (summary.steady.kind != SteadyState::Kind::none) {
    summary.steady_from_s = std::max(0.0, first.rows[from]->begin_s());
    if (!boundaries.empty()) {
      summary.steady_from_epoch = static_cast<double>(from) / static_cast<double>(boundaries[0]);
    }
  }
  const std::span<const double> steady_seconds(seconds.data() + from, steps - from);
  summary.samples_per_s = rate_of(trainings, from, summary.counts_samples);
  summary.step_s = distribution_of(steady_seconds);
  double waited = 0;
  double all = 0;
  double gpu = 0;
  bool gpu_known = steps > from;
  for (const TrainingSteps& each : trainings) {
    for (size_t i = from; i < steps; ++i) {
      waited += each.rows[i]->wait_s;
      all += each.rows[i]->duration_s();
      gpu += each.rows[i]->gpu_s;
      gpu_known = gpu_known && each.rows[i]->gpu_s >= 0;
    }
  }
  if (source.waits && all > 0) summary.wait_share = waited / all;
  if (gpu_known && all > 0) summary.gpu_share = std::min(1.0, gpu / all);
  summary.events = name_events(first, summary.steady);
  for (std::string& event : between_steps(first)) summary.events.push_back(std::move(event));
}

/// Rates that the command printed: each stands for one step of its own length.
void take_values(const Run& run, RunSummary& summary) {
  std::vector<double> seconds;
  std::vector<double> times;
  for (const auto& [time, value] : run.values) {
    if (!(value > 0) || !std::isfinite(1 / value)) continue;
    seconds.push_back(1 / value);
    times.push_back(time);
  }
  if (seconds.empty()) return;
  summary.source = "--pattern";
  summary.steps = seconds.size();
  summary.counts_samples = true;
  summary.steady = steady_state(seconds);
  const size_t from = summary.steady.kind == SteadyState::Kind::none ? 0 : summary.steady.from_step;
  if (summary.steady.kind != SteadyState::Kind::none) {
    summary.steady_from_s = from == 0 ? 0 : times[from];
  }
  // The mean of rates over equal times, not of times over equal samples.
  std::vector<double> rates;
  for (size_t i = from; i < seconds.size(); ++i) rates.push_back(1 / seconds[i]);
  summary.samples_per_s = mean_interval(rates);
}

}  // namespace

std::optional<uint32_t> training_source(const std::vector<StepSource>& sources,
                                        const std::vector<double>& seconds) {
  std::optional<uint32_t> found;
  double best = 0;
  for (uint32_t i = 0; i < sources.size() && i < seconds.size(); ++i) {
    if (seconds[i] <= 0) continue;
    const double score =
        (sources[i].by_script ? 1e12 : 0) + (sources[i].training ? 1e9 : 0) + seconds[i];
    if (score <= best) continue;
    best = score;
    found = i;
  }
  return found;
}

std::string_view name_of(SteadyState::Kind kind) {
  switch (kind) {
    case SteadyState::Kind::flat:
      return "flat";
    case SteadyState::Kind::warm_up:
      return "warm-up";
    case SteadyState::Kind::slow_down:
      return "slow-down";
    case SteadyState::Kind::none:
      break;
  }
  return "no steady state";
}

std::string cause_in_words(SteadyState::Cause cause) {
  using Cause = SteadyState::Cause;
  switch (cause) {
    case Cause::settled:
      return "";
    case Cause::too_short:
      return "too few steps to tell: run it longer";
    case Cause::drift_slower:
      return "it becomes slower all the way: growing memory or a growing working set";
    case Cause::drift_faster:
      return "it becomes faster all the way: a cache that still fills; run it longer";
    case Cause::cyclic:
      return "slow and fast phases come again: a neighbour, or a buffer that fills and empties";
    case Cause::late_slower:
      return "it became slower shortly before the end: throttling, or a neighbour";
    case Cause::late_faster:
      return "it became faster only shortly before the end: run it longer";
    case Cause::ends_unsteady:
      return "it still changed shortly before the end: run it longer";
  }
  return "";
}

std::string steady_in_words(const RunSummary& summary) {
  const SteadyState& steady = summary.steady;
  switch (steady.kind) {
    case SteadyState::Kind::flat:
      return "steady from the first step on";
    case SteadyState::Kind::warm_up:
    case SteadyState::Kind::slow_down: {
      std::string text =
          fmt::format("{}: steady from step {}",
                      steady.kind == SteadyState::Kind::warm_up ? "warm-up" : "slow-down",
                      format_count(steady.from_step + 1));
      if (summary.steady_from_s) {
        text += fmt::format(", {} after the start", format_duration(*summary.steady_from_s));
      }
      if (summary.steady_from_epoch) {
        text += fmt::format(", {:.2g} of an epoch", *summary.steady_from_epoch);
      }
      return text;
    }
    case SteadyState::Kind::none:
      break;
  }
  return "no steady state: " + cause_in_words(steady.cause);
}

namespace {

double span_s(const TrainingSteps& steps) {
  return steps.rows.back()->end_s - steps.rows.front()->begin_s();
}

}  // namespace

std::vector<TrainingSteps> training_steps(const Run& run) {
  std::vector<TrainingSteps> trainings;
  for (const StepSeries& series : run.steps) {
    TrainingSteps training = training_of(series);
    if (!training.rows.empty()) trainings.push_back(std::move(training));
  }
  // A script that says itself what its steps are goes before what the hook saw in it.
  const auto says_itself = [](const TrainingSteps& each) {
    return each.series->sources[each.source].by_script;
  };
  std::set<std::pair<std::string, int64_t>> say_so;
  for (const TrainingSteps& each : trainings) {
    if (says_itself(each)) say_so.emplace(each.series->host, each.series->pid);
  }
  std::erase_if(trainings, [&](const TrainingSteps& each) {
    return !says_itself(each) && say_so.contains({each.series->host, each.series->pid});
  });
  // Processes that stepped far less than the others train nothing: a data worker, a test.
  size_t most = 0;
  for (const TrainingSteps& each : trainings) most = std::max(most, each.rows.size());
  std::erase_if(trainings, [&](const TrainingSteps& each) { return each.rows.size() * 10 < most; });
  // Others that ran before or after the longest are trainings of their own: a loop over seeds.
  const auto longest = std::max_element(
      trainings.begin(), trainings.end(),
      [](const TrainingSteps& a, const TrainingSteps& b) { return span_s(a) < span_s(b); });
  if (longest == trainings.end()) return trainings;
  const TrainingSteps kept = *longest;
  std::erase_if(trainings, [&](const TrainingSteps& each) {
    const double begin = std::max(each.rows.front()->begin_s(), kept.rows.front()->begin_s());
    const double end = std::min(each.rows.back()->end_s, kept.rows.back()->end_s);
    return each.series->host == kept.series->host && end - begin < span_s(each) / 2;
  });
  return trainings;
}

RunSummary summarise(const Run& run) {
  RunSummary summary;
  const std::vector<TrainingSteps> trainings = training_steps(run);
  for (const TrainingSteps& each : trainings) summary.ranks.push_back(rank_of(each));
  measure_lag(trainings, summary.ranks);
  summary.straggler = straggler_of(summary.ranks);
  if (!trainings.empty()) {
    take_steps(trainings, summary);
  } else {
    take_values(run, summary);
  }
  summary.findings = find_what_to_change(run, summary);
  return summary;
}

std::optional<RateComparison> compare(const RunSummary& run, const RunSummary& baseline) {
  if (!run.samples_per_s || !baseline.samples_per_s) return std::nullopt;
  if (run.counts_samples != baseline.counts_samples) return std::nullopt;
  return compare(*run.samples_per_s, *baseline.samples_per_s);
}

}  // namespace stoker
