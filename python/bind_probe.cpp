// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "bind.h"
#include "convert.h"
#include "interruptible.h"
#include "os/output_file.h"
#include "probe/probe.h"
#include "results/document.h"

namespace nb = nanobind;

namespace stoker::python {
namespace {

nb::object probe(const nb::list& places, const std::string& bytes, double seconds, unsigned threads,
                 nb::handle photos, const std::vector<std::string>& only, nb::handle output) {
  ProbeOptions options;
  for (const nb::handle place : places) options.places.push_back(to_path(place));
  options.bytes = to_size("bytes", bytes);
  if (options.bytes < kLeastProbeBytes) {
    throw Error(ErrorKind::usage, "bytes: with less than 8 MiB nothing can be measured");
  }
  options.seconds = seconds;
  options.threads = threads;
  options.photos = to_path(photos);
  const auto wanted = [&](const char* part) {
    return only.empty() || std::find(only.begin(), only.end(), part) != only.end();
  };
  options.storage = wanted("storage");
  options.files = wanted("files");
  options.copies = wanted("copies");
  options.memory = wanted("memory");
  options.decode = wanted("decode");
  options.gpu = wanted("gpu");
  const std::string file = to_path(output);
  return to_str(run_interruptible([&](Progress& progress) {
    const Machine machine = stoker::probe(options, progress);
    std::vector<std::string> profiles = {file};
    if (file.empty()) {
      profiles = write_profiles(machine, profile_directory());
    } else {
      const std::string text = to_text(to_json(machine));
      write_file(file, std::as_bytes(std::span(text)));
    }
    return to_text(probe_document(machine, profiles));
  }));
}

}  // namespace

void bind_probe(nb::module_& module) {
  module.def("probe", &probe, nb::arg("places"), nb::arg("bytes"), nb::arg("seconds"),
             nb::arg("threads"), nb::arg("photos").none(), nb::arg("only"),
             nb::arg("output").none(),
             nb::sig("def probe(places: list[object], bytes: str, seconds: float, threads: int, "
                     "photos: object | None, only: list[str], output: object | None) -> str"));
}

}  // namespace stoker::python
