// SPDX-License-Identifier: Apache-2.0
#include "cli/time_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "cli/json_output.h"

namespace stoker {
namespace {

std::string rate_text(double rate) {
  return rate >= 100 ? format_count(static_cast<uint64_t>(rate + 0.5)) : fmt::format("{:.3g}", rate);
}

std::string interval_text(const Interval& interval, std::string_view unit) {
  return fmt::format("{} {} ({} to {}, 95 %)", rate_text(interval.mean), unit,
                     rate_text(interval.low), rate_text(interval.high));
}

std::string steady_text(const RunSummary& summary) {
  const SteadyState& steady = summary.steady;
  switch (steady.kind) {
    case SteadyState::Kind::flat:
      return "steady from the first step on";
    case SteadyState::Kind::warm_up:
    case SteadyState::Kind::slow_down: {
      std::string text = fmt::format("{}: steady from step {}",
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

std::string steps_text(const RunSummary& summary, const Style& style) {
  std::string text;
  if (summary.source.empty()) {
    return "no steps were seen: nothing that stoker knows was iterated over (--pattern finds rates in "
           "the output)\n";
  }
  const bool none = summary.steady.kind == SteadyState::Kind::none;
  if (summary.samples_per_s) {
    text += style.bold(interval_text(*summary.samples_per_s,
                                     summary.counts_samples ? "samples/s" : "steps/s")) +
            (none ? ", of all steps" : ", in the steady part") + "\n";
  }
  text += steady_text(summary) + "\n";
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
  if (summary.source != "--pattern") {
    text += fmt::format("; a step takes {} (5 to 95 %: {} to {})",
                        format_duration(summary.step_s.median), format_duration(summary.step_s.p5),
                        format_duration(summary.step_s.p95));
  }
  text += "\n";
  for (const std::string& event : summary.events) text += "  " + printable(event) + "\n";
  if (summary.ranks.size() > 1) {
    text += fmt::format("{} ranks\n", summary.ranks.size());
    if (summary.straggler) {
      const RankSummary& slow = summary.ranks[*summary.straggler];
      text += fmt::format("  rank {} on {} holds the others up: a step takes it {}, waiting {:.0f} %\n",
                          slow.rank, printable(slow.host), format_duration(slow.mean_step_s),
                          100 * slow.wait_share);
    }
  }
  return text;
}

std::string resources_text(const RunInfo& info) {
  std::string text = fmt::format("{}: {} of CPU ({:.1f} of {} cores)", format_duration(info.seconds),
                                 format_duration(info.cpu_s), info.cpu_s / std::max(info.seconds, 1e-9),
                                 info.cores);
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

/// Rates of several runs of the same command.
std::optional<Interval> over_runs(const std::vector<RunSummary>& summaries) {
  std::vector<double> rates;
  for (const RunSummary& summary : summaries) {
    if (summary.samples_per_s) rates.push_back(summary.samples_per_s->mean);
  }
  if (rates.size() < 2) return std::nullopt;
  return runs_interval(rates);
}

Json interval_json(const std::optional<Interval>& interval) {
  if (!interval) return nullptr;
  return {{"value", interval->mean}, {"low", interval->low}, {"high", interval->high}};
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json steady_json(const RunSummary& summary) {
  const bool none = summary.steady.kind == SteadyState::Kind::none;
  return {{"class", name_of(summary.steady.kind)},
          {"from_step", none ? Json(nullptr) : Json(summary.steady.from_step)},
          {"from_s", or_null(summary.steady_from_s)},
          {"from_epoch", or_null(summary.steady_from_epoch)},
          {"cause", none ? Json(cause_in_words(summary.steady.cause)) : Json(nullptr)}};
}

Json run_json(const Run& run, const RunSummary& summary) {
  const RunInfo& info = run.info;
  Json json;
  json["run"] = info.directory;
  json["exit_status"] = info.exit_status;
  json["signal"] = info.signal;
  json["seconds"] = info.seconds;
  json["source"] = summary.source;
  json["samples_per_s"] = interval_json(summary.samples_per_s);
  json["counts_samples"] = summary.counts_samples;
  json["wait_share"] = or_null(summary.wait_share);
  json["gpu_share"] = or_null(summary.gpu_share);
  json["steady_state"] = steady_json(summary);
  json["steps"] = summary.steps;
  json["samples"] = summary.samples;
  json["epochs"] = summary.epochs;
  json["step_s"] = {{"median", summary.step_s.median}, {"p5", summary.step_s.p5},
                    {"p95", summary.step_s.p95},       {"p99", summary.step_s.p99},
                    {"jitter", summary.step_s.jitter}};
  json["events"] = summary.events;
  json["ranks"] = Json::array();
  for (const RankSummary& rank : summary.ranks) {
    json["ranks"].push_back({{"rank", rank.rank},
                             {"host", rank.host},
                             {"steps", rank.steps},
                             {"samples", rank.samples},
                             {"mean_step_s", rank.mean_step_s},
                             {"wait_share", rank.wait_share}});
  }
  json["straggler"] = summary.straggler ? Json(summary.ranks[*summary.straggler].rank) : Json(nullptr);
  json["cores"] = info.cores;
  json["cpu_seconds"] = info.cpu_s;
  json["peak_memory_bytes"] = info.peak_memory;
  json["peak_anonymous_bytes"] = info.peak_anonymous;
  json["peak_shared_bytes"] = info.peak_shared;
  json["peak_mapped_bytes"] = info.peak_mapped;
  json["memory_limit_bytes"] = info.memory_limit;
  json["read_bytes"] = info.read_calls_bytes;
  json["read_disk_bytes"] = info.read_disk_bytes;
  json["write_disk_bytes"] = info.write_disk_bytes;
  json["left_running"] = info.left_running;
  json["sampling_cpu_seconds"] = info.sampling_cpu_s;
  json["findings"] = Json::array();
  for (const Finding& finding : summary.findings) {
    json["findings"].push_back({{"what", finding.what}, {"change", finding.change}});
  }
  json["damage"] = run.damage;
  json["trouble"] = info.trouble;
  return json;
}

}  // namespace

std::string time_text(const std::vector<Run>& runs, const std::vector<RunSummary>& summaries,
                      const Style& style) {
  std::string text = "\n";
  const Run& last = runs.back();
  const RunSummary& summary = summaries.back();
  if (const std::optional<Interval> over = over_runs(summaries)) {
    text += style.bold(interval_text(*over, "samples/s")) +
            fmt::format(", over {} runs; the last one:\n", runs.size());
  }
  text += steps_text(summary, style);
  text += resources_text(last.info);
  text += end_text(last.info);
  if (last.info.left_running > 0) {
    text += fmt::format("{} that it started still run\n", counted(last.info.left_running, "process"));
  }
  for (const Finding& finding : summary.findings) {
    text += fmt::format("{} {}\n  {}\n", style.bad("!"), printable(finding.what), printable(finding.change));
  }
  for (const std::string& damage : last.damage) text += "damaged: " + printable(damage) + "\n";
  if (!last.info.trouble.empty()) text += "trouble: " + printable(last.info.trouble) + "\n";
  text += fmt::format("run: {}\n", printable(last.info.directory));
  return text;
}

Json time_document(const std::vector<Run>& runs, const std::vector<RunSummary>& summaries) {
  Json json = document_header("time");
  for (auto& [name, value] : run_json(runs.back(), summaries.back()).items()) json[name] = value;
  if (const std::optional<Interval> over = over_runs(summaries)) {
    json["samples_per_s"] = interval_json(over);
  }
  json["runs"] = Json::array();
  for (size_t i = 0; i < runs.size(); ++i) {
    json["runs"].push_back({{"run", runs[i].info.directory},
                            {"exit_status", runs[i].info.exit_status},
                            {"seconds", runs[i].info.seconds},
                            {"samples_per_s", interval_json(summaries[i].samples_per_s)}});
  }
  return json;
}

Comparison compare_runs(const Run& a, const Run& b) {
  Comparison comparison;
  const RunSummary first = summarise(a);
  const RunSummary second = summarise(b);
  comparison.verdict = "cannot be told: one of them has no steps";
  if (!first.samples_per_s || !second.samples_per_s) return comparison;
  comparison.ratio = ratio_interval(*second.samples_per_s, *first.samples_per_s);
  comparison.verdict = comparison.ratio->low > 1    ? "faster"
                       : comparison.ratio->high < 1 ? "slower"
                                                    : "no difference";
  return comparison;
}

std::string comparison_text(const std::string& a, const std::string& b,
                            const Comparison& comparison) {
  if (!comparison.ratio) return comparison.verdict + "\n";
  return fmt::format("{} beside {}: {}, {:.2f}x ({:.2f} to {:.2f}, 95 %)\n", printable(b), printable(a),
                     comparison.verdict, comparison.ratio->mean, comparison.ratio->low,
                     comparison.ratio->high);
}

Json comparison_document(const Run& a, const Run& b, const Comparison& comparison) {
  Json json = document_header("time");
  json["a"] = a.info.directory;
  json["b"] = b.info.directory;
  json["ratio"] = interval_json(comparison.ratio);
  json["verdict"] = comparison.verdict;
  return json;
}

}  // namespace stoker
