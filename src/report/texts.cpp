// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "report/figures.h"
#include "report/report.h"
#include "report/series.h"

namespace stoker {
namespace {

/// A cell that a spreadsheet takes for text: what begins like a formula gets an apostrophe.
std::string csv_text(std::string_view text) {
  std::string cell = printable(text);
  if (!cell.empty() && std::string_view("=+-@").find(cell.front()) != std::string_view::npos) {
    cell.insert(cell.begin(), '\'');
  }
  if (cell.find_first_of(",\"") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string csv_number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

/// Text that means nothing but itself in Markdown, in a table too.
std::string markdown_text(std::string_view text) {
  std::string escaped;
  for (const char c : printable(text)) {
    if (std::string_view("\\`*_{}[]()<>#|!~$&@").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

void add_figures(const Report& report, std::string& text) {
  text += "\n| figure |";
  for (const ReportedRun& run : report.runs) text += fmt::format(" {} | origin |", run.letter);
  text += "\n|---|";
  for (size_t i = 0; i < report.runs.size(); ++i) text += "---|---|";
  text += "\n";
  for (const auto& row : figure_rows(report)) {
    text += fmt::format("| {} |", markdown_text(row.name));
    for (const std::optional<Figure>& figure : row.figures) {
      text += figure ? fmt::format(" {} | {} |", markdown_text(figure->text),
                                   markdown_text(figure->origin))
                     : " | |";
    }
    text += "\n";
  }
}

void add_scaling(const Report& report, std::string& text) {
  if (report.scaling.empty()) return;
  text += fmt::format(
      "\n## Scaling\n\n{}\n\n| {} | rate | speedup | of ideal |\n|---|---|---|---|\n",
      markdown_text(scaling_advice(report.scaling, report.unit)), markdown_text(report.unit));
  for (const Speedup& each : speedups(report.scaling)) {
    text += fmt::format("| {:g} | {} | {:.2f} | {:.0f} % |\n", each.units, number_text(each.rate),
                        each.speedup, 100 * each.ideal);
  }
}

}  // namespace

std::string report_markdown(const Report& report) {
  std::string text = "# Stoker report\n";
  for (const ReportedRun& run : report.runs) {
    text += fmt::format("\n**{}: {}** ({}, {})  \n{}  \n{}\n", run.letter, markdown_text(run.name),
                        markdown_text(run.run.info.host), markdown_text(run.run.info.started),
                        markdown_text(command_text(run.run.info)), markdown_text(verdict_of(run)));
    for (const Finding& finding : run.summary.findings) {
      text += fmt::format("- {}: {}\n", markdown_text(finding.what), markdown_text(finding.change));
    }
    for (const std::string& damage : run.run.damage) {
      text += fmt::format("- damaged: {}\n", markdown_text(damage));
    }
  }
  for (const ReportedComparison& each : comparisons_of(report)) {
    text += fmt::format("\n{}\n", markdown_text(each.text));
  }
  add_figures(report, text);
  add_scaling(report, text);
  return text;
}

std::string report_csv(const Report& report) {
  std::string text = "run,figure,value,low,high,unit,origin\n";
  for (const ReportedRun& run : report.runs) {
    for (const Figure& figure : figures_of(run)) {
      text += fmt::format("{},{},{},{},{},{},{}\n", csv_text(run.name), csv_text(figure.name),
                          csv_number(figure.value), csv_number(figure.low), csv_number(figure.high),
                          csv_text(figure.unit), csv_text(figure.origin));
    }
  }
  return text;
}

std::string report_steps(const Report& report) {
  static constexpr std::array<std::string_view, 3> kKinds = {"step", "end of epoch", "mark"};
  std::string text = "run,host,pid,rank,source,kind,epoch,end_s,wait_s,step_s,gpu_s,samples\n";
  for (const ReportedRun& run : report.runs) {
    for (const StepSeries& series : run.run.steps) {
      const std::string begin = fmt::format("{},{},{},{}", csv_text(run.name),
                                            csv_text(series.host), series.pid, series.rank);
      for (const StepSeries::Row& row : series.rows) {
        text += fmt::format("{},{},{},{},{:.9f},{:.9f},{:.9f},{},{}\n", begin,
                            csv_text(series.sources[row.source].name),
                            kKinds[static_cast<size_t>(row.kind)], row.epoch, row.end_s, row.wait_s,
                            row.step_s, row.gpu_s < 0 ? "" : fmt::format("{:.9f}", row.gpu_s),
                            row.samples);
      }
    }
  }
  return text;
}

}  // namespace stoker
