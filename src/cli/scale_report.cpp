// SPDX-License-Identifier: Apache-2.0
#include "cli/scale_report.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "cli/scale_plot.h"
#include "measure/scale_document.h"

namespace stoker {
namespace {

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
    rows.push_back({format_count(width.n), figure_text(shown_value(width, result.measure)),
                    interval ? range_text(*interval, figure_text) : "-",
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

}  // namespace

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
  } else {
    for (const std::string& remark : result.remarks) text += remark + "\n";
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

}  // namespace stoker
