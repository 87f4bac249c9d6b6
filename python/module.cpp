// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "base/freed_memory.h"
#include "base/units.h"
#include "bind.h"
#include "errors.h"

NB_MODULE(_core, module) {
  using namespace stoker;  // NOLINT(google-build-using-namespace): the scope of one function
  nanobind::set_leak_warnings(false);  // they would be printed
  module.doc() = "What the stoker package is made of. Use that instead: this may change.";
  module.attr("version") = STOKER_VERSION;
  module.def("format_bytes", &format_bytes, nanobind::arg("bytes"));
  keep_freed_memory();
  python::register_errors();
  python::bind_dataset(module);
  python::bind_pack(module);
  python::bind_index(module);
  python::bind_check(module);
  python::bind_decode(module);
  python::bind_augment(module);
  python::bind_load(module);
  python::bind_measure(module);
  python::bind_probe(module);
  python::bind_job(module);
  python::bind_report(module);
  python::bind_stage(module);
}
