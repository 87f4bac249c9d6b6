// SPDX-License-Identifier: Apache-2.0
#include "cli/scale_report.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "cli/json_output.h"
#include "cli/scale_plot.h"
#include "measure/run_document.h"

namespace stoker {
namespace {

std::string figure(double value) {
  return value >= 100 ? format_count(static_cast<uint64_t>(value + 0.5))
                      : fmt::format("{:.3g}", value);
}

/// The advice is plain ASCII; people write it with a sign.
std::string with_signs(std::string text, bool unicode) {
  for (size_t at = 0; unicode && (at = text.find("x (", at)) != std::string::npos; at += 2) {
    text.replace(at, 1, "×");
  }
  return text;
}

/// Of the rate, or of the seconds, whichever was measured; nothing where these may be any number.
std::optional<Interval> shown_interval(const ScaleWidth& width, ScaleMeasure measure) {
  if (!width.interval || measure != ScaleMeasure::seconds) return width.interval;
  if (!(width.interval->low > 0)) return std::nullopt;
  const double work = width.seconds * width.rate;
  return Interval{width.seconds, work / width.interval->high, work / width.interval->low};
}

double shown_value(const ScaleWidth& width, ScaleMeasure measure) {
  return measure == ScaleMeasure::seconds ? width.seconds : width.rate;
}

std::string widths_text(const ScaleOptions& options, const ScaleResult& result,
                        const Style& style) {
  const std::string_view titles[] = {"samples/s", "steps/s", "seconds"};
  const std::vector<Column> columns = {{name_of(options.axis), true},
                                       {titles[static_cast<size_t>(result.measure)], true},
                                       {"95 %", true},
                                       {"speedup", true},
                                       {"of ideal", true},
                                       {"runs", true}};
  std::vector<std::vector<std::string>> rows;
  for (const ScaleWidth& width : result.widths) {
    const auto interval = shown_interval(width, result.measure);
    rows.push_back(
        {format_count(width.n), figure(shown_value(width, result.measure)),
         interval ? fmt::format("{} to {}", figure(interval->low), figure(interval->high)) : "-",
         fmt::format("{:.2f}{}", width.speedup, style.unicode ? "×" : "x"),
         fmt::format("{:.0f} %", width.percent_of_ideal), format_count(width.runs)});
  }
  return table(columns, rows, style);
}

std::string parameter_text(std::string_view name, const Interval& interval) {
  return fmt::format("{} {:.3g} ({:.3g} to {:.3g})", name, interval.value, interval.low,
                     interval.high);
}

std::string fits_text(const std::vector<FittedModel>& fits) {
  std::string text;
  for (const FittedModel& each : fits) {
    text += fmt::format("{:<10} {}", name_of(each.fit.model),
                        parameter_text("alpha", each.intervals.alpha));
    if (each.fit.model == ScalingModel::usl) {
      text += ", " + parameter_text("beta", each.intervals.beta);
    }
    text += fmt::format(", off by {:.1f} %{}\n", 100 * each.fit.error,
                        each.best ? "; predicts best" : "");
  }
  return text;
}

std::string predictions_text(const ScaleOptions& options, const ScaleResult& result,
                             const ScaleAnalysis& analysis) {
  std::string text;
  for (const ScalePrediction& each : analysis.predictions) {
    text += fmt::format("{}: ", counted(each.n, unit_of(options.axis)));
    if (!each.rate) {
      text += fmt::format("not predicted: {}\n", each.refused);
      continue;
    }
    const double one = result.widths.front().rate / result.widths.front().speedup;
    text += fmt::format("{:.2f}x predicted ({:.2f} to {:.2f})\n", each.rate->value / one,
                        each.rate->low / one, each.rate->high / one);
  }
  return text;
}

std::string measure_text(const ScaleOptions& options, ScaleMeasure measure) {
  const std::string_view scaling = options.weak ? "weak scaling" : "strong scaling";
  if (measure != ScaleMeasure::seconds) {
    return fmt::format("measured: {} of each run; {}\n",
                       measure == ScaleMeasure::samples_per_s ? "samples/s" : "steps/s", scaling);
  }
  return fmt::format(
      "measured: wall time of each run, as not all told a rate (--pattern finds one in the "
      "output); {}: {}\n",
      scaling, options.weak ? "n times the work at width n" : "the same work at each width");
}

std::string hurts_text(const ScaleAnalysis& analysis, ScaleAxis axis) {
  if (!analysis.hurts_beyond) return "";
  return fmt::format("More than {} make it slower.\n",
                     counted(*analysis.hurts_beyond, unit_of(axis)));
}

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

std::string_view name_of(ScaleMeasure measure) {
  constexpr std::string_view kNames[] = {"samples_per_s", "steps_per_s", "seconds"};
  return kNames[static_cast<size_t>(measure)];
}

std::string scale_text(const ScaleOptions& options, const ScaleResult& result,
                       const ScaleAnalysis& analysis, const Style& style) {
  std::string text;
  if (!result.widths.empty()) {
    text += widths_text(options, result, style) + "\n";
    text += scale_plot(options, result, analysis, style) + "\n";
    text += fits_text(analysis.fits);
    text += predictions_text(options, result, analysis);
    text += measure_text(options, result.measure);
    for (const std::string& remark : result.remarks) text += remark + "\n";
    text += style.bold(with_signs(analysis.advice, style.unicode)) + "\n";
    text += hurts_text(analysis, options.axis);
    if (!analysis.doubt.empty()) text += analysis.doubt + "\n";
  }
  if (result.failed) {
    text += style.bad(fmt::format("{} failed with exit status {}",
                                  counted(result.failed->n, unit_of(options.axis)),
                                  result.failed->exit_status)) +
            fmt::format(": {}.log has what was written; --output {} goes on from here\n",
                        printable(result.failed->directory), shell_word(result.directory));
  }
  return text + fmt::format("sweep: {}\n", printable(result.directory));
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

std::string scale_csv(const ScaleResult& result) {
  std::string text =
      fmt::format("n,{},low,high,speedup,percent_of_ideal,runs\n", name_of(result.measure));
  for (const ScaleWidth& width : result.widths) {
    const auto interval = shown_interval(width, result.measure);
    text += fmt::format("{},{},{},{},{},{},{}\n", width.n, shown_value(width, result.measure),
                        interval ? fmt::format("{}", interval->low) : "",
                        interval ? fmt::format("{}", interval->high) : "", width.speedup,
                        width.percent_of_ideal, width.runs);
  }
  return text;
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
