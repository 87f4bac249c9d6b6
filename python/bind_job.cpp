// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "base/json.h"
#include "bind.h"
#include "convert.h"
#include "interruptible.h"
#include "os/node.h"
#include "results/document.h"
#include "slurm/job.h"

namespace nb = nanobind;

namespace stoker::python {
namespace {

nb::object job_by_id(const std::string& id, nb::handle run) {
  const std::string directory = to_path(run);
  return to_str(run_interruptible([&](Progress&) {
    return to_text(job_document(stoker::job(id, directory, slurm_runner())));
  }));
}

nb::object jobs_of_user(const std::string& user, unsigned days) {
  return to_str(run_interruptible([&](Progress&) {
    return to_text(
        user_jobs_document(user_jobs(user.empty() ? user_name() : user, days, slurm_runner())));
  }));
}

}  // namespace

void bind_job(nb::module_& module) {
  module.def("job", &job_by_id, nb::arg("id"), nb::arg("run").none(),
             nb::sig("def job(id: str, run: object | None) -> str"));
  module.def("user_jobs", &jobs_of_user, nb::arg("user"), nb::arg("days"),
             nb::sig("def user_jobs(user: str, days: int) -> str"));
}

}  // namespace stoker::python
