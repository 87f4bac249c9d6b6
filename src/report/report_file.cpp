// SPDX-License-Identifier: Apache-2.0
#include "report/report_file.h"

#include <fmt/format.h>

#include <array>

#include "base/bytes.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "os/output_file.h"
#include "results/document.h"

namespace stoker {
namespace {

std::string json_text(const Report& report) {
  Json json = document_header("report");
  json.update(report_document(report));
  return to_text(json);
}

constexpr std::array kForms = {
    ReportForm{"html", ".html", ".htm", report_html},
    ReportForm{"json", ".json", "", json_text},
    ReportForm{"csv", ".csv", "", report_csv},
    ReportForm{"steps", ".steps.csv", "", report_steps},
    ReportForm{"markdown", ".md", ".markdown", report_markdown},
    ReportForm{"tensorboard", "-tensorboard", "", nullptr},
};

}  // namespace

std::vector<std::string_view> report_formats() {
  std::vector<std::string_view> names;
  for (const ReportForm& form : kForms) names.push_back(form.name);
  return names;
}

const ReportForm& report_form(std::string_view name, const std::string& output) {
  const std::vector<std::string_view> names = report_formats();
  for (const ReportForm& form : kForms) {
    if (form.name == name) return form;
  }
  if (!name.empty()) {
    throw Error(ErrorKind::usage, fmt::format("format '{}': should be one of {}", printable(name),
                                              fmt::join(names, ", ")));
  }
  if (output.empty()) return kForms.front();
  const ReportForm* found = nullptr;
  for (const ReportForm& form : kForms) {
    const bool other = !form.other_suffix.empty() && output.ends_with(form.other_suffix);
    if (!output.ends_with(form.suffix) && !other) continue;
    if (found == nullptr || form.suffix.size() > found->suffix.size()) found = &form;
  }
  if (found != nullptr) return *found;
  throw Error(ErrorKind::usage,
              fmt::format("{}: its suffix does not say what to write; --format is one of {}",
                          printable(output), fmt::join(names, ", ")));
}

uint64_t write_report(const Report& report, const ReportForm& form, const std::string& output) {
  if (form.text == nullptr) return write_tensorboard(report, output);
  const std::string text = form.text(report);
  write_file(output, as_bytes(text));
  return text.size();
}

Json report_file_document(const Report& report, const std::string& output, std::string_view format,
                          uint64_t bytes) {
  Json document = document_header("report");
  document["output"] = output.empty() ? Json(nullptr) : Json(output);
  document["format"] = output.empty() ? Json(nullptr) : Json(format);
  document["bytes"] = bytes;
  document.update(report_document(report));
  return document;
}

}  // namespace stoker
