// SPDX-License-Identifier: Apache-2.0
#include "measure/gpu_worth.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "measure/scale.h"

namespace stoker {
namespace {

constexpr double kHour = 3600;

Interval times(const Interval& interval, double factor) {
  return {interval.value * factor, interval.low * factor, interval.high * factor};
}

void require_good(const Run& run) {
  if (run.info.ended && run.info.exit_status == 0) return;
  throw Error(ErrorKind::usage, fmt::format("{}: {}, so it says nothing about its speed",
                                            printable(run.info.directory),
                                            run.info.ended ? "failed" : "did not end"));
}

}  // namespace

GpuWorth gpu_worth(const Run& cpu, const Run& gpu, const std::optional<HourPrices>& prices) {
  require_good(cpu);
  require_good(gpu);
  GpuWorth worth;
  worth.cores = std::max(1U, cpu.info.cores);
  const std::string& visible = gpu.info.visible_gpus;
  worth.gpus = 1 + static_cast<double>(std::count(visible.begin(), visible.end(), ','));
  const RunSummary on_cpu = summarise(cpu);
  const RunSummary on_gpu = summarise(gpu);
  const auto cpu_rate = told_rate(cpu, on_cpu);
  const auto gpu_rate = told_rate(gpu, on_gpu);
  worth.by_time = !cpu_rate || !gpu_rate || on_cpu.counts_samples != on_gpu.counts_samples;
  worth.cpu_rate = worth.by_time ? 1 / cpu.info.seconds : cpu_rate->value;
  worth.gpu_rate = worth.by_time ? 1 / gpu.info.seconds : gpu_rate->value;
  const double ratio = worth.gpu_rate / worth.cpu_rate;
  worth.speedup = {ratio, ratio, ratio};
  if (!worth.by_time) {
    if (const auto compared = compare(*gpu_rate, *cpu_rate)) worth.speedup = compared->ratio;
  }
  worth.core_hours_per_gpu_hour = times(worth.speedup, worth.cores / worth.gpus);
  if (prices) {
    const double price = prices->gpu / prices->core;
    const Interval& hours = worth.core_hours_per_gpu_hour;
    worth.cost_ratio = Interval{price / hours.value, price / hours.high, price / hours.low};
  }
  return worth;
}

std::string gpu_worth_text(const GpuWorth& worth, const std::optional<HourPrices>& prices) {
  const Interval& hours = worth.core_hours_per_gpu_hour;
  const std::string gpus =
      worth.gpus == 1 ? "The GPU is" : fmt::format("{:g} GPUs are", worth.gpus);
  std::string text = fmt::format(
      "{} {:.3g}x as fast as {:g} core{} ({}, 95 %", gpus, worth.speedup.value, worth.cores,
      worth.cores == 1 ? "" : "s",
      range_text(worth.speedup, [](double value) { return fmt::format("{:.3g}", value); }));
  text += worth.by_time ? "; by the time of the whole run, for the same work)." : ").";
  text += fmt::format(
      " {} {} a core-hour, {} a GPU-hour: a GPU-hour is worth it up to the price of {} core-hours "
      "({}).",
      figure_text(kHour * worth.cpu_rate / worth.cores), worth.by_time ? "runs" : "samples",
      figure_text(kHour * worth.gpu_rate / worth.gpus), figure_text(hours.value),
      range_text(hours, figure_text));
  if (!worth.cost_ratio) return text;
  const Interval& cost = *worth.cost_ratio;
  const std::string_view verdict = cost.high < 1  ? "The GPU is worth it"
                                   : cost.low > 1 ? "The GPU is not worth it, but for the time"
                                                  : "Which is cheaper cannot be told";
  return text + fmt::format(
                    " {}: at {:g} a core-hour and {:g} a GPU-hour the same work costs {:.3g} times "
                    "as much on the GPU ({:.3g} to {:.3g}).",
                    verdict, prices->core, prices->gpu, cost.value, cost.low, cost.high);
}

}  // namespace stoker
