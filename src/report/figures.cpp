// SPDX-License-Identifier: Apache-2.0
#include "report/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/units.h"

namespace stoker {
namespace {

constexpr double kMuchWaiting = 0.1;
constexpr const char* kUnknown = "not known";

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string rate_unit(const RunSummary& summary) {
  return summary.counts_samples ? "samples/s" : "steps/s";
}

/// "steps 31 to 1,000 of DataLoader(…), 4 ranks"
std::string steps_origin(const RunSummary& summary) {
  if (summary.source == "--pattern") {
    return fmt::format("{} rates that the command printed", format_count(summary.steps));
  }
  const size_t from = summary.steady.kind == SteadyState::Kind::none ? 0 : summary.steady.from_step;
  std::string text = fmt::format("steps {} to {} of {}", format_count(from + 1),
                                 format_count(summary.steps), printable(summary.source));
  if (summary.ranks.size() > 1) text += fmt::format(", {} ranks", summary.ranks.size());
  return text;
}

/// How long it ran, also where nobody noted its end.
double seconds_of(const Run& run) {
  if (run.info.ended) return run.info.seconds;
  double seconds = run.resources.empty() ? 0 : run.resources.back().time_s;
  for (const StepSeries& series : run.steps) {
    if (!series.rows.empty()) seconds = std::max(seconds, series.rows.back().end_s);
  }
  return seconds;
}

void add_step_figures(const RunSummary& summary, std::vector<Figure>& figures) {
  const std::string origin = steps_origin(summary);
  const bool any = !summary.source.empty();
  const std::string no_steps = any ? kUnknown : "no steps were seen";
  Figure rate{"throughput", {}, {}, {}, rate_unit(summary), no_steps, ""};
  if (const auto& interval = summary.samples_per_s) {
    rate.value = interval->value;
    rate.low = interval->low;
    rate.high = interval->high;
    rate.text = fmt::format("{} {} ({}, 95 %)", number_text(interval->value), rate.unit,
                            range_text(*interval, number_text));
    rate.origin = "measured: " + origin;
  }
  figures.push_back(rate);
  Figure wait{"waiting for data", summary.wait_share, {}, {}, "share of the time", no_steps, ""};
  if (summary.wait_share) {
    wait.text = percent(*summary.wait_share) + " of the time";
    wait.origin = "measured: " + origin;
  } else if (any) {
    wait.text = "cannot be told from the step here";
  }
  figures.push_back(wait);
  if (summary.gpu_share) {
    figures.push_back({"on the GPU",
                       summary.gpu_share,
                       {},
                       {},
                       "share of a step",
                       percent(*summary.gpu_share) + " of a step",
                       "measured: CUDA events around " + origin});
  }
  Figure step{"a step", {}, {}, {}, "s", no_steps, ""};
  if (const auto& time = summary.step_s) {
    step.value = time->median;
    step.low = time->p5;
    step.high = time->p95;
    step.text = fmt::format("{} (5 to 95 %: {} to {})", format_duration(time->median),
                            format_duration(time->p5), format_duration(time->p95));
    step.origin = "measured: median of " + origin;
  }
  figures.push_back(step);
  Figure steady{"steady from", summary.steady_from_s, {}, {}, "s", no_steps, ""};
  if (any) {
    steady.text = steady_in_words(summary);
    steady.origin = "computed: from the times of all steps";
  }
  figures.push_back(steady);
  figures.push_back(
      {"steps",
       static_cast<double>(summary.steps),
       {},
       {},
       "steps",
       fmt::format("{} in {}, {} samples", format_count(summary.steps),
                   summary.epochs == 1 ? "1 epoch" : fmt::format("{} epochs", summary.epochs),
                   format_count(summary.samples)),
       "measured: counted"});
}

std::string of_limit(uint64_t bytes, uint64_t limit) {
  return format_bytes(bytes) + (limit > 0 ? " of " + format_bytes(limit) : "");
}

void add_resource_figures(const Run& run, std::vector<Figure>& figures) {
  const RunInfo& info = run.info;
  const double seconds = seconds_of(run);
  figures.push_back({"duration",
                     seconds,
                     {},
                     {},
                     "s",
                     format_duration(seconds),
                     info.ended ? "measured: from start to end"
                                : "measured: up to what was last recorded; the end was not"});
  const ResourceSample last = run.resources.empty() ? ResourceSample() : run.resources.back();
  const std::string looks =
      fmt::format("the process tree, {} looks", format_count(run.resources.size()));
  const double cpu = info.ended ? info.cpu_s : last.cpu_s;
  const double cores = cpu / std::max(seconds, 1e-9);
  figures.push_back(
      {"CPU",
       cores,
       {},
       {},
       "cores",
       fmt::format("{:.1f} of {} cores ({})", cores, info.cores, format_duration(cpu)),
       "measured: " + looks + "; given: the cores"});
  uint64_t peak = info.peak_memory;
  for (const ResourceSample& sample : run.resources) peak = std::max(peak, sample.memory());
  figures.push_back({"memory at most",
                     static_cast<double>(peak),
                     {},
                     {},
                     "bytes",
                     of_limit(peak, info.memory_limit),
                     "measured: " + looks + (info.memory_limit > 0 ? "; given: the limit" : "")});
  const uint64_t read = std::max(info.read_calls_bytes, last.read_calls_bytes);
  const uint64_t disk = std::max(info.read_disk_bytes, last.read_disk_bytes);
  figures.push_back(
      {"read",
       static_cast<double>(read),
       {},
       {},
       "bytes",
       fmt::format("{}, {} of it from the disk", format_bytes(read), format_bytes(disk)),
       "measured: the kernel's counters of the processes"});
  figures.push_back({"cost of measuring",
                     info.sampling_cpu_s,
                     {},
                     {},
                     "s",
                     format_duration(info.sampling_cpu_s) + " of CPU",
                     "measured: looking at the processes; steps not counted"});
}

std::string waiting_sentence(const RunSummary& summary) {
  if (!summary.wait_share) return "";
  const double share = *summary.wait_share;
  if (share < kMuchWaiting) {
    return fmt::format(" It waits for data {} of the time: faster loading would bring little.",
                       percent(share));
  }
  std::string text = fmt::format(" It waits for data {} of the time", percent(share));
  if (summary.samples_per_s && share < 1) {
    text +=
        fmt::format("; without waiting, the same steps would make {} {}",
                    number_text(summary.samples_per_s->value / (1 - share)), rate_unit(summary));
  }
  return text + ".";
}

std::string end_sentence(const RunInfo& info) {
  if (!info.ended) return " Its end was not recorded.";
  if (info.signal != 0) return fmt::format(" It was ended by signal {}.", info.signal);
  if (info.exit_status != 0) return fmt::format(" It failed: exit status {}.", info.exit_status);
  return "";
}

}  // namespace

std::string number_text(double value) { return std::isfinite(value) ? figure_text(value) : "n/a"; }

std::vector<Figure> figures_of(const ReportedRun& run) {
  std::vector<Figure> figures;
  add_step_figures(run.summary, figures);
  add_resource_figures(run.run, figures);
  return figures;
}

std::vector<FigureRow> figure_rows(const Report& report) {
  std::vector<FigureRow> rows;
  for (size_t i = 0; i < report.runs.size(); ++i) {
    for (Figure& figure : figures_of(report.runs[i])) {
      auto row = std::find_if(rows.begin(), rows.end(),
                              [&](const FigureRow& each) { return each.name == figure.name; });
      if (row == rows.end()) row = rows.insert(row, {figure.name, {}});
      row->figures.resize(report.runs.size());
      row->figures[i] = std::move(figure);
    }
  }
  return rows;
}

std::string verdict_of(const ReportedRun& run) {
  const RunSummary& summary = run.summary;
  std::string text;
  if (!summary.samples_per_s) {
    text = summary.source.empty() ? "No steps were seen: only what the processes used is known."
                                  : "Too few steps for a rate.";
  } else {
    text = fmt::format("{} {}{}.", number_text(summary.samples_per_s->value), rate_unit(summary),
                       summary.steady.kind == SteadyState::Kind::none
                           ? " over all steps; there is no steady state"
                           : " in the steady part");
  }
  return text + waiting_sentence(summary) + end_sentence(run.run.info);
}

std::vector<ReportedComparison> comparisons_of(const Report& report) {
  std::vector<ReportedComparison> all;
  for (size_t i = 1; i < report.runs.size(); ++i) {
    ReportedComparison& each = all.emplace_back();
    each.run = &report.runs[i];
    const ReportedRun& first = report.runs.front();
    each.rates = compare(each.run->summary, first.summary);
    each.text = fmt::format("{} beside {}: ", each.run->letter, first.letter);
    if (!each.rates) {
      each.text += "cannot be told, one of them has no rate or does not count samples";
      continue;
    }
    const Interval& ratio = each.rates->ratio;
    each.text += fmt::format("{}, {}", name_of(each.rates->verdict), ratio_text(ratio));
  }
  return all;
}

std::string_view title_of(ScalingModel model) {
  switch (model) {
    case ScalingModel::amdahl:
      return "Amdahl";
    case ScalingModel::gustafson:
      return "Gustafson";
    case ScalingModel::usl:
      break;
  }
  return "USL";
}

std::string command_text(const RunInfo& info) {
  std::string text;
  for (const std::string& word : info.command) {
    if (!text.empty()) text += ' ';
    const bool plain =
        !word.empty() && word.find_first_of(" \t\n'\"\\$`&|;<>()*?[]{}#~!") == std::string::npos;
    text += plain ? word : "'" + word + "'";
  }
  return printable(text);
}

}  // namespace stoker
