// SPDX-License-Identifier: Apache-2.0
#include "cli/scale_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"

namespace stoker {
namespace {

/// What is drawn, in numbers of units and speedups.
class Curves {
 public:
  Curves(const ScaleResult& result, const ScaleAnalysis& analysis) : widths_(result.widths) {
    const ScaleWidth& first = widths_.front();
    one_ = first.rate / first.speedup;
    most_n = static_cast<double>(widths_.back().n);
    for (const ScaleWidth& width : widths_) {
      most_speedup = std::max(most_speedup, width.speedup);
      if (width.interval) most_speedup = std::max(most_speedup, width.interval->high / one_);
    }
    // So much of the ideal is seen that one sees where it leads.
    most_speedup = std::min(std::max(1.25 * most_speedup, 1.5), std::max(most_n, 1.5) * 1.05);
    for (const ScaleWidth& width : widths_) most_speedup = std::max(most_speedup, width.speedup);
    for (const FittedModel& each : analysis.fits) {
      if (each.best) best_ = each.fit;
    }
  }

  const std::vector<ScaleWidth>& widths() const { return widths_; }
  std::optional<double> model(double n) const {
    const auto rate = best_ ? predicted_rate(*best_, n) : std::nullopt;
    return rate ? std::optional(*rate / one_) : std::nullopt;
  }
  std::optional<ScalingModel> model_name() const {
    return best_ ? std::optional(best_->model) : std::nullopt;
  }
  double low(const ScaleWidth& width) const { return width.interval->low / one_; }
  double high(const ScaleWidth& width) const { return width.interval->high / one_; }

  double most_n = 1, most_speedup = 1.5;

 private:
  const std::vector<ScaleWidth>& widths_;
  std::optional<ScalingFit> best_;
  double one_ = 1;
};

constexpr size_t kRows = 12;
constexpr size_t kMargin = 7;  // for the numbers beside the plot

/// Rows of signs, each of which is one column wide.
using Canvas = std::vector<std::vector<std::string>>;

size_t column_of(double n, const Curves& curves, size_t columns) {
  const double place = n / curves.most_n * static_cast<double>(columns - 1);
  return std::min(columns - 1, static_cast<size_t>(std::max(0.0, place) + 0.5));
}

void draw(Canvas& canvas, const Curves& curves, size_t column, double speedup,
          std::string_view sign) {
  const double row = speedup / curves.most_speedup * static_cast<double>(kRows - 1) + 0.5;
  if (!(row >= 0) || row >= static_cast<double>(kRows)) return;
  canvas[kRows - 1 - static_cast<size_t>(row)][column] = sign;
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

/// 1, 2 or 5 times a power of ten, so that an axis has about five numbers.
double tick_step(double most) {
  const double raw = most / 5;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw) return factor * power;
  }
  return 10 * power;
}

// Of the picture and of the plot in it, in pixels.
constexpr double kWidth = 640, kHeight = 400;
constexpr double kLeft = 60, kRight = 620, kTop = 40, kBottom = 345;

class Svg {
 public:
  explicit Svg(const Curves& curves) : curves_(curves) {}

  double x(double n) const { return kLeft + (kRight - kLeft) * n / curves_.most_n / 1.03; }
  double y(double speedup) const {
    return kBottom - (kBottom - kTop) * speedup / curves_.most_speedup;
  }
  void line(double x1, double y1, double x2, double y2, std::string_view style) {
    text_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1,
                         y1, x2, y2, style);
  }
  void label(double x, double y, std::string_view anchor, std::string_view words) {
    text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y,
                         anchor, escaped(words));
  }
  void add(std::string_view element) { text_ += element; }
  const std::string& text() const { return text_; }

 private:
  const Curves& curves_;
  std::string text_;
};

void draw_axes(Svg& svg, const Curves& curves, const ScaleOptions& options) {
  constexpr std::string_view kAxis = "stroke=\"#333\"";
  svg.line(kLeft, kBottom, kRight, kBottom, kAxis);
  svg.line(kLeft, kBottom, kLeft, kTop, kAxis);
  const double step = tick_step(curves.most_speedup);
  for (double tick = 0; tick <= curves.most_speedup; tick += step) {
    svg.line(kLeft - 4, svg.y(tick), kRight, svg.y(tick), "stroke=\"#ddd\"");
    svg.label(kLeft - 8, svg.y(tick) + 4, "end", fmt::format("{:g}", tick));
  }
  double free_from = 0;  // numbers must not lie on each other
  for (const ScaleWidth& width : curves.widths()) {
    const double x = svg.x(static_cast<double>(width.n));
    svg.line(x, kBottom, x, kBottom + 4, kAxis);
    const std::string number = std::to_string(width.n);
    const double half = 4.0 * static_cast<double>(number.size());
    if (x - half < free_from) continue;
    svg.label(x, kBottom + 18, "middle", number);
    free_from = x + half + 2;
  }
  svg.label((kLeft + kRight) / 2, kBottom + 40, "middle", name_of(options.axis));
  svg.add(
      fmt::format("<text transform=\"translate(18,{:.1f}) rotate(-90)\" "
                  "text-anchor=\"middle\">speedup</text>\n",
                  (kTop + kBottom) / 2));
}

void draw_curves(Svg& svg, const Curves& curves) {
  const double end = std::min(curves.most_n, curves.most_speedup);
  svg.line(svg.x(0), svg.y(0), svg.x(end), svg.y(end), "stroke=\"#888\" stroke-dasharray=\"5 4\"");
  if (curves.model_name()) {
    std::string points;
    constexpr int kSteps = 200;
    for (int i = 0; i <= kSteps; ++i) {
      const double n = 1 + (curves.most_n - 1) * i / kSteps;
      const double speedup = std::min(curves.model(n).value_or(0), curves.most_speedup);
      points += fmt::format("{:.1f},{:.1f} ", svg.x(n), svg.y(speedup));
    }
    points.pop_back();
    svg.add(
        fmt::format("<polyline fill=\"none\" stroke=\"#1f77b4\" stroke-width=\"2\" "
                    "points=\"{}\"/>\n",
                    points));
  }
  for (const ScaleWidth& width : curves.widths()) {
    const double x = svg.x(static_cast<double>(width.n));
    if (width.interval) {
      const double low = svg.y(std::max(0.0, curves.low(width)));
      const double high = svg.y(std::min(curves.most_speedup, curves.high(width)));
      svg.line(x, low, x, high, "stroke=\"#d62728\" class=\"interval\"");
      svg.line(x - 4, low, x + 4, low, "stroke=\"#d62728\"");
      svg.line(x - 4, high, x + 4, high, "stroke=\"#d62728\"");
    }
    svg.add(fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"#d62728\"/>\n", x,
                        svg.y(width.speedup)));
  }
}

}  // namespace

std::string scale_plot(const ScaleOptions& options, const ScaleResult& result,
                       const ScaleAnalysis& analysis, const Style& style) {
  const Curves curves(result, analysis);
  const size_t columns = std::clamp<size_t>(style.width, 30, 67) - kMargin;
  Canvas canvas(kRows, std::vector<std::string>(columns, " "));
  for (size_t column = 0; column < columns; ++column) {
    const double n = curves.most_n * static_cast<double>(column) / static_cast<double>(columns - 1);
    draw(canvas, curves, column, n, style.unicode ? "·" : ".");
    if (const auto speedup = curves.model(n)) {
      draw(canvas, curves, column, *speedup, style.unicode ? "─" : "-");
    }
  }
  for (const ScaleWidth& width : curves.widths()) {
    draw(canvas, curves, column_of(static_cast<double>(width.n), curves, columns), width.speedup,
         style.unicode ? "●" : "o");
  }
  std::string text;
  for (size_t row = 0; row < kRows; ++row) {
    const double speedup = curves.most_speedup * static_cast<double>(kRows - 1 - row) / (kRows - 1);
    std::string line = row % 3 == 2 ? fmt::format("{:>5.1f} ", speedup) : std::string(6, ' ');
    line += style.unicode ? "│" : "|";
    for (const std::string& sign : canvas[row]) line += sign;
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  std::string numbers(kMargin + columns + 8, ' ');
  size_t free_from = 0;
  for (const ScaleWidth& width : curves.widths()) {
    const std::string number = std::to_string(width.n);
    const size_t at = kMargin + column_of(static_cast<double>(width.n), curves, columns);
    if (at < free_from) continue;
    numbers.replace(at, number.size(), number);
    free_from = at + number.size() + 1;
  }
  std::string axis = std::string(6, ' ') + (style.unicode ? "└" : "+");
  for (size_t i = 0; i < columns; ++i) axis += style.unicode ? "─" : "-";
  text += axis + "\n" + numbers.substr(0, numbers.find_last_not_of(' ') + 1) + "\n";
  text += fmt::format("       speedup over {}; {} measured, {} ideal", name_of(options.axis),
                      style.unicode ? "●" : "o", style.unicode ? "·" : ".");
  if (curves.model_name()) {
    text += fmt::format(", {} {}", style.unicode ? "─" : "-", name_of(*curves.model_name()));
  }
  return text + "\n";
}

std::string scale_svg(const ScaleOptions& options, const ScaleResult& result,
                      const ScaleAnalysis& analysis) {
  const Curves curves(result, analysis);
  Svg svg(curves);
  std::string title;
  for (const std::string& word : options.command) title += (title.empty() ? "" : " ") + word;
  Style plain;
  svg.label(kLeft, 22, "start", shorten(title, 80, plain));
  draw_axes(svg, curves, options);
  draw_curves(svg, curves);
  svg.label(kRight, 392, "end",
            curves.model_name()
                ? fmt::format("dashed: ideal; line: {}; bars: 95 %", name_of(*curves.model_name()))
                : "dashed: ideal; bars: 95 %");
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" "
      "height=\"{1:g}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{2}</svg>\n",
      kWidth, kHeight, svg.text());
}

}  // namespace stoker
