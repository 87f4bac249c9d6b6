// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"

namespace stoker {

/// One way to write a report, and the suffixes that ask for it.
struct ReportForm {
  std::string_view name, suffix, other_suffix;
  std::string (*text)(const Report& report);  // nothing for a directory
};

/// Their names.
std::vector<std::string_view> report_formats();
/// The form of this name; without one, what the suffix of `output` asks for, a page where there is
/// none either. Throws Error(usage) where neither is known.
const ReportForm& report_form(std::string_view name, const std::string& output);

/// Returns the bytes written.
uint64_t write_report(const Report& report, const ReportForm& form, const std::string& output);

/// What `stoker report --json` prints; `output` is empty where nothing was written.
Json report_file_document(const Report& report, const std::string& output, std::string_view format,
                          uint64_t bytes);

}  // namespace stoker
