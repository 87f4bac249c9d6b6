// SPDX-License-Identifier: Apache-2.0
#include "cli/time_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "measure/findings.h"
#include "measure/run_document.h"

namespace stoker {
namespace {

std::string interval_text(const Interval& interval, std::string_view unit) {
  return fmt::format("{} {} ({}, 95 %)", figure_text(interval.value), unit,
                     range_text(interval, figure_text));
}

std::string steps_text(const Run& run, const RunSummary& summary, const Style& style) {
  std::string text;
  if (summary.source.empty()) {
    if (hook_was_ignored(run, summary)) return "";  // a finding says so
    return "no steps were seen: nothing that stoker knows was iterated over (--pattern finds rates "
           "in "
           "the output)\n";
  }
  const bool none = summary.steady.kind == SteadyState::Kind::none;
  if (summary.samples_per_s) {
    text += style.bold(interval_text(*summary.samples_per_s,
                                     summary.counts_samples ? "samples/s" : "steps/s")) +
            (none ? ", of all steps" : ", in the steady part") + "\n";
  }
  text += steady_in_words(summary) + "\n";
  if (summary.wait_share) {
    text += fmt::format("waiting for data: {:.1f} % of the time\n", 100 * *summary.wait_share);
  } else if (summary.source != "--pattern") {
    text += "waiting for data: cannot be told from the step here\n";
  }
  if (summary.gpu_share) {
    text += fmt::format("on the GPU: {:.1f} % of a step, between the first and the last it did\n",
                        100 * *summary.gpu_share);
  }
  text += fmt::format("{} from {}", counted(summary.steps, "step"), printable(summary.source));
  if (summary.samples > 0) text += fmt::format(", {}", counted(summary.samples, "sample"));
  if (summary.step_s) {
    text += fmt::format("; a step takes {} (5 to 95 %: {} to {})",
                        format_duration(summary.step_s->median),
                        format_duration(summary.step_s->p5), format_duration(summary.step_s->p95));
  }
  text += "\n";
  for (const std::string& event : summary.events) text += "  " + printable(event) + "\n";
  if (summary.ranks.size() > 1) {
    text += fmt::format("{} ranks\n", summary.ranks.size());
    if (summary.straggler) {
      const RankSummary& slow = summary.ranks[*summary.straggler];
      text += fmt::format(
          "  rank {} on {} holds the others up: a step takes it {}, waiting {:.0f} %\n", slow.rank,
          printable(slow.host), format_duration(slow.mean_step_s), 100 * slow.wait_share);
    }
  }
  return text;
}

std::string resources_text(const RunInfo& info) {
  std::string text = fmt::format("{}: {} of CPU ({:.1f} of {} cores)",
                                 format_duration(info.seconds), format_duration(info.cpu_s),
                                 info.cpu_s / std::max(info.seconds, 1e-9), info.cores);
  text += fmt::format(", memory at most {}", format_bytes(info.peak_memory));
  if (info.memory_limit > 0) text += fmt::format(" of {}", format_bytes(info.memory_limit));
  text += fmt::format(", read {} ({} from the disk)\n", format_bytes(info.read_calls_bytes),
                      format_bytes(info.read_disk_bytes));
  return text;
}

std::string end_text(const RunInfo& info) {
  if (info.signal != 0) return fmt::format("ended by signal {}\n", info.signal);
  if (info.exit_status != 0) return fmt::format("exit status {}\n", info.exit_status);
  return "";
}

}  // namespace

std::string time_text(const std::vector<Run>& runs, const std::vector<RunSummary>& summaries,
                      const Style& style) {
  std::string text = "\n";
  const Run& last = runs.back();
  const RunSummary& summary = summaries.back();
  if (const std::optional<Interval> over = rate_over_runs(summaries)) {
    text += style.bold(interval_text(*over, summary.counts_samples ? "samples/s" : "steps/s")) +
            fmt::format(", over {} runs; the last one:\n", runs.size());
  }
  text += steps_text(last, summary, style);
  text += resources_text(last.info);
  text += end_text(last.info);
  if (last.info.left_running > 0) {
    text +=
        fmt::format("{} that it started still run\n", counted(last.info.left_running, "process"));
  }
  for (const Finding& finding : summary.findings) {
    text += fmt::format("{} {}\n  {}\n", style.bad("!"), printable(finding.what),
                        printable(finding.change));
  }
  for (const std::string& damage : last.damage) text += "damaged: " + printable(damage) + "\n";
  if (!last.info.trouble.empty()) text += "trouble: " + printable(last.info.trouble) + "\n";
  text += fmt::format("run: {}\n", printable(last.info.directory));
  return text;
}

std::string comparison_text(const Run& a, const Run& b) {
  const std::optional<RateComparison> comparison = compare(summarise(b), summarise(a));
  const std::string names =
      fmt::format("{} beside {}", printable(b.info.directory), printable(a.info.directory));
  if (!comparison) {
    std::string text =
        names + ": cannot be told, one of them has no steps or does not count samples\n";
    for (const Run* run : {&a, &b}) {
      for (const std::string& damage : run->damage) text += "damaged: " + printable(damage) + "\n";
    }
    return text;
  }
  const Interval& ratio = comparison->ratio;
  return fmt::format("{}: {}, {}\n", names, name_of(comparison->verdict), ratio_text(ratio));
}

}  // namespace stoker
