// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "base/json.h"
#include "bind.h"
#include "convert.h"
#include "interruptible.h"
#include "report/report_file.h"
#include "results/document.h"

namespace nb = nanobind;

namespace stoker::python {
namespace {

nb::object report(const nb::list& runs, nb::handle output, const std::string& format,
                  const std::vector<double>& units, const std::string& unit) {
  ReportOptions options;
  for (const nb::handle run : runs) options.runs.push_back(to_path(run));
  options.units = units;
  options.unit = unit;
  std::string file = to_path(output);
  const ReportForm& form = report_form(format, file);
  const bool written = !file.empty() || !format.empty();
  if (written && file.empty()) file = "report" + std::string(form.suffix);
  return to_str(run_interruptible([&](Progress&) {
    const Report made = make_report(options);
    const uint64_t bytes = written ? write_report(made, form, file) : 0;
    return to_text(report_file_document(made, file, form.name, bytes));
  }));
}

}  // namespace

void bind_report(nb::module_& module) {
  module.def("report", &report, nb::arg("runs"), nb::arg("output").none(), nb::arg("format"),
             nb::arg("units"), nb::arg("unit"),
             nb::sig("def report(runs: list[object], output: object | None, format: str, "
                     "units: list[float], unit: str) -> str"));
}

}  // namespace stoker::python
