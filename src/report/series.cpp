// SPDX-License-Identifier: Apache-2.0
#include "report/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"

namespace stoker {
namespace {

constexpr size_t kMostPoints = 500;
constexpr double kGiga = 1e9;

/// So many digits: a page is read by people, and must stay small.
double rounded(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10.0, digits - 1 - std::floor(std::log10(std::abs(value))));
  return std::isfinite(scale) ? std::round(value * scale) / scale : value;
}

void fill(Series& series, const std::vector<Sampled>& samples) {
  series.points = thin(samples, kMostPoints);
  double weights = 0;
  for (const Sampled& each : samples) {
    series.mean += each.value * each.weight;
    weights += each.weight;
  }
  if (weights > 0) series.mean /= weights;
}

void add_step_series(const ReportedRun& run, std::vector<Series>& all) {
  const std::vector<ReportedStep> steps = steps_of(run);
  if (steps.empty()) return;
  const RunSummary& summary = run.summary;
  const bool steady = summary.steady.kind != SteadyState::Kind::none;
  Series rate{"throughput", "Throughput", summary.counts_samples ? "samples/s" : "steps/s", "s"};
  Series waiting{"waiting", "Waiting for data", "% of a step", "step"};
  rate.from = steady && summary.steady.from_step > 0 ? summary.steady_from_s.value_or(0) : 0;
  waiting.from = steady ? static_cast<double>(summary.steady.from_step) : 0;
  std::vector<Sampled> rates;
  std::vector<Sampled> waits;
  for (size_t i = 0; i < steps.size(); ++i) {
    const ReportedStep& step = steps[i];
    const double weight = std::max(step.seconds, 1e-12);
    rates.push_back({step.end_s, step.rate, weight});
    if (step.wait_share >= 0) {
      waits.push_back({static_cast<double>(i + 1), 100 * step.wait_share, weight});
    }
  }
  fill(rate, rates);
  fill(waiting, waits);
  all.push_back(std::move(rate));
  if (summary.wait_share) all.push_back(std::move(waiting));
}

void add_resource_series(const Run& run, std::vector<Series>& all) {
  std::vector<Sampled> cpu;
  std::vector<Sampled> memory;
  std::vector<Sampled> gpu;
  for (const ReportedUse& use : uses_of(run)) {
    cpu.push_back({use.time_s, use.cores, use.seconds});
    memory.push_back({use.time_s, static_cast<double>(use.sample->memory()) / kGiga, use.seconds});
    if (use.sample->gpu_busy >= 0) {
      gpu.push_back({use.time_s, 100 * use.sample->gpu_busy, use.seconds});
    }
  }
  const auto add = [&all](Series series, double limit, const std::vector<Sampled>& samples) {
    if (samples.empty()) return;
    series.limit = limit;
    fill(series, samples);
    all.push_back(std::move(series));
  };
  add({"cpu", "CPU", "cores in use", "s"}, static_cast<double>(run.info.cores), cpu);
  add({"memory", "Memory", "GB", "s"}, static_cast<double>(run.info.memory_limit) / kGiga, memory);
  add({"gpu", "GPU", "% of the time busy", "s"}, 100, gpu);
}

}  // namespace

std::vector<SeriesPoint> thin(const std::vector<Sampled>& samples, size_t most) {
  std::vector<SeriesPoint> points;
  const size_t count = std::min(samples.size(), most);
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = i * samples.size() / count;
    const size_t end = (i + 1) * samples.size() / count;
    SeriesPoint point;
    double weights = 0;
    point.low = point.high = samples[begin].value;
    for (size_t j = begin; j < end; ++j) {
      point.low = std::min(point.low, samples[j].value);
      point.high = std::max(point.high, samples[j].value);
      point.mean += samples[j].value * samples[j].weight;
      weights += samples[j].weight;
    }
    point.mean = weights > 0 ? point.mean / weights : samples[begin].value;
    point.x = (samples[begin].x + samples[end - 1].x) / 2;
    points.push_back(point);
  }
  return points;
}

std::vector<Series> series_of(const ReportedRun& run) {
  std::vector<Series> all;
  add_step_series(run, all);
  add_resource_series(run.run, all);
  return all;
}

std::vector<ReportedStep> steps_of(const ReportedRun& run) {
  std::vector<ReportedStep> steps;
  const std::vector<TrainingSteps> trainings = training_steps(run.run);
  if (trainings.empty()) {
    for (const auto& [time, value] : run.run.values) {
      if (value > 0 && std::isfinite(value)) steps.push_back({time, 1 / value, value, -1});
    }
    return steps;
  }
  for (size_t i = 0; i < run.summary.steps; ++i) {
    const StepSeries::Row& first = *trainings.front().rows[i];
    ReportedStep step{first.end_s, first.duration_s(), 0, -1};
    double samples = 0;
    double waited = 0;
    double all = 0;
    for (const TrainingSteps& each : trainings) {
      samples += static_cast<double>(each.rows[i]->samples);
      waited += each.rows[i]->wait_s;
      all += each.rows[i]->duration_s();
    }
    if (!run.summary.counts_samples) samples = 1;
    step.rate = step.seconds > 0 ? samples / step.seconds : 0;
    if (run.summary.wait_share) step.wait_share = all > 0 ? waited / all : 0;
    steps.push_back(step);
  }
  return steps;
}

std::vector<ReportedUse> uses_of(const Run& run) {
  std::vector<ReportedUse> uses;
  for (size_t i = 1; i < run.resources.size(); ++i) {
    const ResourceSample& before = run.resources[i - 1];
    const ResourceSample& now = run.resources[i];
    const double seconds = now.time_s - before.time_s;
    if (!(seconds > 0)) continue;
    uses.push_back({now.time_s, std::max(0.0, now.cpu_s - before.cpu_s) / seconds, seconds, &now});
  }
  return uses;
}

Json series_json(const Series& series) {
  Json json = {{"title", series.title}, {"unit", series.unit}, {"axis", series.axis}};
  json["limit"] = series.limit > 0 ? Json(series.limit) : Json(nullptr);
  json["steady_from"] = rounded(series.from, 7);
  Json x = Json::array();
  Json low = Json::array();
  Json mean = Json::array();
  Json high = Json::array();
  for (const SeriesPoint& point : series.points) {
    x.push_back(rounded(point.x, 7));
    low.push_back(rounded(point.low, 4));
    mean.push_back(rounded(point.mean, 4));
    high.push_back(rounded(point.high, 4));
  }
  json["x"] = std::move(x);
  json["low"] = std::move(low);
  json["mean"] = std::move(mean);
  json["high"] = std::move(high);
  return json;
}

}  // namespace stoker
