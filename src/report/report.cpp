// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "measure/run_document.h"
#include "report/figures.h"
#include "report/series.h"

namespace stoker {
namespace {

/// A, B, … Z, AA, AB, …
std::string letter_of(size_t number) {
  std::string letters;
  for (size_t rest = number + 1; rest > 0; rest = (rest - 1) / 26) {
    letters.insert(letters.begin(), static_cast<char>('A' + (rest - 1) % 26));
  }
  return letters;
}

void take_scaling(const ReportOptions& options, Report& report) {
  if (!options.units.empty() && options.units.size() != report.runs.size()) {
    throw Error(ErrorKind::usage, fmt::format("--units names {} numbers for {} runs",
                                              options.units.size(), report.runs.size()));
  }
  report.unit = options.unit.empty() ? options.units.empty() ? "rank" : "unit" : options.unit;
  for (size_t i = 0; i < report.runs.size(); ++i) {
    const RunSummary& summary = report.runs[i].summary;
    if (!summary.samples_per_s) continue;
    const double units =
        options.units.empty() ? static_cast<double>(summary.ranks.size()) : options.units[i];
    if (units > 0) report.scaling.push_back({units, summary.samples_per_s->value});
  }
  const auto same = [&](const ScalingPoint& each) {
    return each.units == report.scaling.front().units;
  };
  if (std::all_of(report.scaling.begin(), report.scaling.end(), same)) report.scaling.clear();
}

Json figure_json(const Figure& figure) {
  const auto number = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  return {{"name", figure.name},       {"value", number(figure.value)},
          {"low", number(figure.low)}, {"high", number(figure.high)},
          {"unit", figure.unit},       {"text", figure.text},
          {"origin", figure.origin}};
}

Json run_json(const ReportedRun& each) {
  Json json = run_document(each.run, each.summary);
  json["run"] = each.name;
  json["letter"] = each.letter;
  json["command"] = each.run.info.command;
  json["host"] = each.run.info.host;
  json["started"] = each.run.info.started;
  json["verdict"] = verdict_of(each);
  json["figures"] = Json::array();
  for (const Figure& figure : figures_of(each)) json["figures"].push_back(figure_json(figure));
  json["series"] = Json::object();
  for (const Series& series : series_of(each)) json["series"][series.name] = series_json(series);
  return json;
}

Json scaling_json(const Report& report) {
  if (report.scaling.empty()) return nullptr;
  Json json;
  json["unit"] = report.unit;
  json["points"] = Json::array();
  for (const Speedup& each : speedups(report.scaling)) {
    json["points"].push_back({{"units", each.units},
                              {"samples_per_s", each.rate},
                              {"speedup", each.speedup},
                              {"efficiency", each.ideal}});
  }
  json["model"] = nullptr;
  json["fit"] = Json::array();
  if (const std::optional<ScalingFit> fit = best_scaling(report.scaling)) {
    json["model"] = title_of(fit->model);
    constexpr int kPoints = 60;
    for (int i = 0; i <= kPoints; ++i) {
      const double units = 1 + (2 * fit->most_units - 1) * i / kPoints;
      if (const auto rate = predicted_rate(*fit, units)) json["fit"].push_back({units, *rate});
    }
  }
  json["advice"] = scaling_advice(report.scaling, report.unit);
  return json;
}

}  // namespace

Report make_report(const ReportOptions& options) {
  Report report;
  for (const std::string& directory : options.runs) {
    ReportedRun each;
    each.name = directory;
    each.letter = letter_of(report.runs.size());
    each.run = read_run(directory);
    each.summary = summarise(each.run);
    report.runs.push_back(std::move(each));
  }
  take_scaling(options, report);
  return report;
}

Json report_document(const Report& report) {
  Json json;
  json["runs"] = Json::array();
  for (const ReportedRun& each : report.runs) json["runs"].push_back(run_json(each));
  json["comparisons"] = Json::array();
  for (const ReportedComparison& each : comparisons_of(report)) {
    json["comparisons"].push_back(
        {{"run", each.run->letter},
         {"baseline", report.runs.front().letter},
         {"verdict", each.rates ? Json(name_of(each.rates->verdict)) : Json(nullptr)},
         {"ratio", each.rates ? interval_json(each.rates->ratio) : Json(nullptr)},
         {"text", each.text}});
  }
  json["scaling"] = scaling_json(report);
  return json;
}

}  // namespace stoker
