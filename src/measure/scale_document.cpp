// SPDX-License-Identifier: Apache-2.0
#include "measure/scale_document.h"

#include "base/json.h"
#include "measure/run_document.h"
#include "results/document.h"

namespace stoker {
namespace {

Json fits_json(const std::vector<FittedModel>& fits) {
  Json list = Json::array();
  for (const FittedModel& each : fits) {
    list.push_back(
        {{"model", name_of(each.fit.model)},
         {"gamma", interval_json(each.intervals.gamma)},
         {"alpha", interval_json(each.intervals.alpha)},
         {"beta",
          each.fit.model == ScalingModel::usl ? interval_json(each.intervals.beta) : Json(nullptr)},
         {"relative_error", each.fit.error},
         {"best", each.best}});
  }
  return list;
}

Json run_json(const ScaleRun& run) {
  return {{"n", run.n},
          {"repeat", run.repeat},
          {"run", run.directory},
          {"exit_status", run.exit_status},
          {"seconds", run.seconds},
          {"rate", run.rate ? Json(run.rate->value) : Json(nullptr)},
          {"found", run.found}};
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

std::string with_signs(std::string text, bool unicode) {
  for (size_t at = 0; unicode && (at = text.find("x (", at)) != std::string::npos; at += 2) {
    text.replace(at, 1, "×");
  }
  return text;
}

std::optional<Interval> shown_interval(const ScaleWidth& width, ScaleMeasure measure) {
  if (!width.interval || measure != ScaleMeasure::seconds) return width.interval;
  if (!(width.interval->low > 0)) return std::nullopt;
  const double work = width.seconds * width.rate;
  return Interval{width.seconds, work / width.interval->high, work / width.interval->low};
}

double shown_value(const ScaleWidth& width, ScaleMeasure measure) {
  return measure == ScaleMeasure::seconds ? width.seconds : width.rate;
}

std::string_view name_of(ScaleMeasure measure) {
  constexpr std::string_view kNames[] = {"samples_per_s", "steps_per_s", "seconds"};
  return kNames[static_cast<size_t>(measure)];
}

Json scale_document(const ScalePlan& plan, const ScaleResult& result,
                    const ScaleAnalysis& analysis) {
  const ScaleOptions& options = plan.options;
  Json json = document_header("scale");
  json["output"] = result.directory;
  json["command"] = options.command;
  json["axis"] = name_of(options.axis);
  json["scaling"] = options.weak ? "weak" : "strong";
  json["measured"] = name_of(result.measure);
  json["seed"] = plan.seed;
  json["points"] = Json::array();
  for (const ScaleWidth& width : result.widths) {
    json["points"].push_back({{"n", width.n},
                              {name_of(result.measure), shown_value(width, result.measure)},
                              {"interval", interval_json(shown_interval(width, result.measure))},
                              {"speedup", width.speedup},
                              {"percent_of_ideal", width.percent_of_ideal},
                              {"runs", width.runs}});
  }
  json["fits"] = fits_json(analysis.fits);
  json["advice"] = with_signs(analysis.advice, true);
  json["doubt"] = analysis.doubt.empty() ? Json(nullptr) : Json(analysis.doubt);
  json["ask_for"] = or_null(analysis.worthwhile);
  json["hurts_beyond"] = or_null(analysis.hurts_beyond);
  json["predictions"] = Json::array();
  for (const ScalePrediction& each : analysis.predictions) {
    json["predictions"].push_back(
        {{"n", each.n},
         {"rate", interval_json(each.rate)},
         {"refused", each.refused.empty() ? Json(nullptr) : Json(each.refused)}});
  }
  json["remarks"] = result.remarks;
  json["runs"] = Json::array();
  for (const ScaleRun& run : result.runs) json["runs"].push_back(run_json(run));
  json["failed"] = result.failed ? run_json(*result.failed) : Json(nullptr);
  return json;
}

Json worth_document(const GpuWorth& worth, const std::optional<HourPrices>& prices) {
  constexpr double kHour = 3600;
  Json json = document_header("scale");
  json["measured"] = worth.by_time ? "seconds" : "samples_per_s";
  json["cores"] = worth.cores;
  json["gpus"] = worth.gpus;
  json["per_core_hour"] = kHour * worth.cpu_rate / worth.cores;
  json["per_gpu_hour"] = kHour * worth.gpu_rate / worth.gpus;
  json["gpu_speedup"] = interval_json(worth.speedup);
  json["core_hours_per_gpu_hour"] = interval_json(worth.core_hours_per_gpu_hour);
  json["cost_ratio"] = interval_json(worth.cost_ratio);
  json["advice"] = gpu_worth_text(worth, prices);
  return json;
}

}  // namespace stoker
