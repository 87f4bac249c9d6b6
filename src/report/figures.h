// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"

namespace stoker {

/// One figure of a run, and where it comes from.
struct Figure {
  std::string name;
  std::optional<double> value, low, high;  // in `unit`
  std::string unit;
  std::string text;    // value and unit for a person
  std::string origin;  // "measured: …", "computed: …", "given: …"
};

/// What is not known says so in its text.
std::vector<Figure> figures_of(const ReportedRun& run);

/// The figures of all runs beside each other; a run may lack one.
struct FigureRow {
  std::string name;
  std::vector<std::optional<Figure>> figures;
};
std::vector<FigureRow> figure_rows(const Report& report);

/// What the run says, in a sentence or two.
std::string verdict_of(const ReportedRun& run);

/// A run beside the first one.
struct ReportedComparison {
  const ReportedRun* run = nullptr;
  std::optional<RateComparison> rates;  // nothing where one of them has no rate
  std::string text;
};
std::vector<ReportedComparison> comparisons_of(const Report& report);

std::string_view title_of(ScalingModel model);

/// The command as it would be typed, for a person.
std::string command_text(const RunInfo& info);
/// Three digits, or thousands with their commas.
std::string number_text(double value);

}  // namespace stoker
