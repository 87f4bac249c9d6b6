// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "report/figures.h"
#include "report/page.h"
#include "report/report.h"
#include "report/series.h"

namespace stoker {
namespace {

/// Text as it stands between tags and within quoted attributes.
std::string html(std::string_view text) {
  std::string escaped;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

/// A document that can stand in a script element: nothing in it ends or begins one. All that is
/// not ASCII is escaped, U+2028 and U+2029 included.
std::string json_in_page(const Json& document) {
  std::string escaped;
  for (const char c : document.dump(-1, ' ', true, Json::error_handler_t::replace)) {
    if (c == '<' || c == '>' || c == '&') {
      escaped += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      escaped += c;
    }
  }
  return escaped;
}

/// As a Content-Security-Policy names it: base64 of the bytes that the digits stand for.
std::string csp_hash(std::string_view digits) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bits;
  for (const char digit : digits) {
    const int value = digit <= '9' ? digit - '0' : digit - 'a' + 10;
    for (int bit = 3; bit >= 0; --bit) bits += static_cast<char>('0' + (value >> bit & 1));
  }
  std::string text;
  while (bits.size() % 24 != 0) bits += '=';
  for (size_t i = 0; i < bits.size(); i += 6) {
    unsigned value = 0;
    for (size_t bit = i; bit < i + 6; ++bit) value = value << 1 | (bits[bit] == '1' ? 1U : 0U);
    text += bits[i] == '=' ? '=' : kAlphabet[value];
  }
  return text;
}

std::string joined(const PagePart& part) { return fmt::format("{}", fmt::join(part.pieces, "")); }

/// A bar of waiting and computing; attributes, because the policy takes no style of single
/// elements.
std::string share_bar(double share) {
  const double waiting = std::clamp(100 * share, 0.0, 100.0);
  return fmt::format(
      "<svg class=\"shares\" viewBox=\"0 0 100 4\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"{0:.1f} % waiting for data\"><rect class=\"computing\" width=\"100\" "
      "height=\"4\"/><rect class=\"waiting\" width=\"{0:.2f}\" height=\"4\"/></svg>"
      "<p class=\"key\"><span class=\"waiting\">waiting for data {0:.1f} %</span> "
      "<span class=\"computing\">computing {1:.1f} %</span></p>\n",
      waiting, 100 - waiting);
}

std::string run_card(const ReportedRun& run) {
  const RunInfo& info = run.run.info;
  std::string text = fmt::format(
      "<article class=\"card\">\n<h2><span class=\"letter\" data-letter=\"{0}\">{0}</span> "
      "<span class=\"name\">{1}</span></h2>\n<p class=\"command\"><code>{2}</code></p>\n"
      "<p class=\"where\">{3}{4}{5}</p>\n<p class=\"verdict\">{6}</p>\n",
      run.letter, html(run.name), html(command_text(info)), html(info.host),
      info.started.empty() ? "" : ", " + html(info.started),
      info.slurm_job.empty() ? "" : ", Slurm job " + html(info.slurm_job), html(verdict_of(run)));
  if (run.summary.wait_share) text += share_bar(*run.summary.wait_share);
  for (const Finding& finding : run.summary.findings) {
    text += fmt::format("<div class=\"finding\"><strong>{}</strong><br>{}</div>\n",
                        html(finding.what), html(finding.change));
  }
  std::vector<std::string> notes = run.summary.events;
  if (const auto straggler = run.summary.straggler) {
    const RankSummary& slow = run.summary.ranks[*straggler];
    notes.push_back(fmt::format("rank {} on {} holds the others up", slow.rank, slow.host));
  }
  for (const std::string& damage : run.run.damage) notes.push_back("damaged: " + damage);
  if (!info.trouble.empty()) notes.push_back("trouble: " + info.trouble);
  if (notes.empty()) return text + "</article>\n";
  text += "<ul>";
  for (const std::string& note : notes) text += fmt::format("<li>{}</li>", html(note));
  return text + "</ul>\n</article>\n";
}

std::string comparison_lines(const Report& report) {
  const std::vector<ReportedComparison> all = comparisons_of(report);
  if (all.empty()) return "";
  std::string text = "<section class=\"comparison\">";
  for (const ReportedComparison& each : all) text += fmt::format("<p>{}</p>", html(each.text));
  return text + "</section>\n";
}

std::string figure_table(const Report& report) {
  std::string text =
      "<section>\n<h2>Figures</h2>\n<table class=\"figures\">\n<thead><tr><th "
      "scope=\"col\">figure</th>";
  for (const ReportedRun& run : report.runs) {
    text += fmt::format("<th scope=\"col\">{}</th>", report.runs.size() > 1 ? run.letter : "value");
  }
  text += "</tr></thead>\n<tbody>\n";
  for (const FigureRow& row : figure_rows(report)) {
    text += fmt::format("<tr><th scope=\"row\">{}</th>", html(row.name));
    for (size_t i = 0; i < row.figures.size(); ++i) {
      const std::optional<Figure>& figure = row.figures[i];
      text += fmt::format("<td data-run=\"{}\">{}<small>{}</small></td>",
                          report.runs.size() > 1 ? report.runs[i].letter : "",
                          figure ? html(figure->text) : "", figure ? html(figure->origin) : "");
    }
    text += "</tr>\n";
  }
  return text + "</tbody>\n</table>\n</section>\n";
}

/// The place of a chart, and the same in a few figures for whoever sees no chart.
std::string chart_place(std::string_view name, std::string_view title, std::string_view unit,
                        const std::string& rows, std::string_view advice = "") {
  return fmt::format(
      "<figure id=\"chart-{}\" data-series=\"{}\">\n<figcaption>{} <span "
      "class=\"unit\">{}</span></figcaption>\n<div class=\"legend\"></div>\n<div class=\"plot\" "
      "role=\"img\" aria-label=\"{}, as the table below says\"></div>\n<table "
      "class=\"alternative\">{}</table>\n{}</figure>\n",
      name, name, html(title), html(unit), html(title), rows,
      advice.empty() ? "" : fmt::format("<p class=\"advice\">{}</p>\n", html(advice)));
}

std::string chart_places(const Report& report) {
  std::vector<std::pair<Series, std::string>> charts;
  for (const ReportedRun& run : report.runs) {
    for (const Series& series : series_of(run)) {
      auto chart = std::find_if(charts.begin(), charts.end(),
                                [&](const auto& each) { return each.first.name == series.name; });
      if (chart == charts.end()) {
        chart = charts.insert(chart, {series,
                                      "<tr><th scope=\"col\">run</th><th scope=\"col\">lowest</th>"
                                      "<th scope=\"col\">mean</th><th scope=\"col\">highest</th>"
                                      "</tr>"});
      }
      double low = series.points.front().low;
      double high = series.points.front().high;
      for (const SeriesPoint& point : series.points) {
        low = std::min(low, point.low);
        high = std::max(high, point.high);
      }
      chart->second +=
          fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
                      run.letter, number_text(low), number_text(series.mean), number_text(high));
    }
  }
  std::string text;
  for (const auto& [series, rows] : charts) {
    text += chart_place(series.name, series.title, series.unit, rows);
  }
  return text;
}

std::string scaling_place(const Report& report) {
  if (report.scaling.empty()) return "";
  std::string rows = fmt::format(
      "<tr><th scope=\"col\">{}s</th><th scope=\"col\">rate</th><th scope=\"col\">speedup</th>"
      "<th scope=\"col\">of ideal</th></tr>",
      html(report.unit));
  for (const Speedup& each : speedups(report.scaling)) {
    rows += fmt::format(
        "<tr><th scope=\"row\">{:g}</th><td>{}</td><td>{:.2f}</td><td>{:.0f} %</td></tr>",
        each.units, number_text(each.rate), each.speedup, 100 * each.ideal);
  }
  return chart_place("scaling", "Scaling", "samples/s by " + report.unit + "s", rows,
                     scaling_advice(report.scaling, report.unit));
}

}  // namespace

std::string report_html(const Report& report) {
  const std::string policy = fmt::format(
      "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; base-uri "
      "'none'; form-action 'none'",
      csp_hash(page_script().sha256), csp_hash(page_style().sha256));
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" "
      "content=\"no-referrer\">\n<title>Stoker report: {}</title>\n<style>",
      policy, html(report.runs.front().name));
  page += joined(page_style());
  page += "</style>\n</head>\n<body>\n<header><h1>Stoker report</h1></header>\n<main>\n";
  page += comparison_lines(report);
  page += "<section class=\"cards\">\n";
  for (const ReportedRun& run : report.runs) page += run_card(run);
  page += "</section>\n<section class=\"charts\">\n";
  page += chart_places(report);
  page += scaling_place(report);
  page += "</section>\n";
  page += figure_table(report);
  page += fmt::format(
      "</main>\n<footer>Written by stoker {}. Charts by dygraphs (MIT licence). Drag to zoom, "
      "double-click to go back; lines are means, bands reach from the lowest to the highest "
      "value.</footer>\n<script type=\"application/json\" id=\"report\">",
      STOKER_VERSION);
  page += json_in_page(report_document(report));
  page += "</script>\n<script>";
  page += joined(page_script());
  page += "</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace stoker
