// SPDX-License-Identifier: Apache-2.0
#include "measure/run_document.h"

#include "base/json.h"
#include "results/document.h"

namespace stoker {
namespace {

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

}  // namespace

Json interval_json(const std::optional<Interval>& interval) {
  if (!interval) return nullptr;
  return {{"value", interval->value}, {"low", interval->low}, {"high", interval->high}};
}

Json run_document(const Run& run, const RunSummary& summary) {
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
  json["step_s"] = nullptr;
  if (const auto& step = summary.step_s) {
    json["step_s"] = {{"median", step->median}, {"p5", step->p5},   {"p25", step->p25},
                      {"p75", step->p75},       {"p95", step->p95}, {"p99", step->p99},
                      {"jitter", step->jitter}};
  }
  json["events"] = summary.events;
  json["ranks"] = Json::array();
  for (const RankSummary& rank : summary.ranks) {
    json["ranks"].push_back({{"rank", rank.rank},
                             {"host", rank.host},
                             {"steps", rank.steps},
                             {"samples", rank.samples},
                             {"mean_step_s", rank.mean_step_s},
                             {"lag_s", rank.lag_s},
                             {"wait_share", rank.wait_share}});
  }
  json["straggler"] =
      summary.straggler ? Json(summary.ranks[*summary.straggler].rank) : Json(nullptr);
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

std::optional<Interval> rate_over_runs(const std::vector<RunSummary>& summaries) {
  std::vector<double> rates;
  for (const RunSummary& summary : summaries) {
    if (summary.samples_per_s) rates.push_back(summary.samples_per_s->value);
  }
  if (rates.size() < 2) return std::nullopt;
  return runs_interval(rates);
}

Json time_document(const std::vector<Run>& runs, const std::vector<RunSummary>& summaries) {
  Json json = document_header("time");
  json.update(run_document(runs.back(), summaries.back()));
  if (const std::optional<Interval> over = rate_over_runs(summaries)) {
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

Json comparison_document(const Run& a, const Run& b) {
  const std::optional<RateComparison> comparison = compare(summarise(b), summarise(a));
  Json json = document_header("time");
  json["a"] = a.info.directory;
  json["b"] = b.info.directory;
  json["ratio"] = comparison ? interval_json(comparison->ratio) : Json(nullptr);
  json["verdict"] = comparison ? Json(name_of(comparison->verdict)) : Json(nullptr);
  return json;
}

}  // namespace stoker
