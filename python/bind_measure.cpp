// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/json.h"
#include "bind.h"
#include "measure/run_document.h"
#include "measure/time.h"

namespace nb = nanobind;

namespace stoker::python {

void bind_measure(nb::module_& module) {
  module.def(
      "begin_run",
      [](const std::string& directory, const std::vector<std::string>& command) {
        return begin_run(directory, command).directory;
      },
      nb::arg("directory"), nb::arg("command"));
  module.def(
      "run_summary",
      [](const std::string& directory) {
        const Run run = read_run(directory);
        return run_document(run, summarise(run)).dump();
      },
      nb::arg("directory"), nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace stoker::python
