// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "bind.h"
#include "convert.h"
#include "measure/run_document.h"
#include "measure/scale_document.h"
#include "measure/time.h"
#include "results/document.h"

namespace nb = nanobind;

namespace stoker::python {
namespace {

std::vector<std::string> words_of(const nb::list& list) {
  std::vector<std::string> words;
  for (const nb::handle word : list) words.push_back(to_bytes(word));
  return words;
}

/// With the GIL. Throws where warnings are made errors.
void warn(const std::string& note) {
  if (PyErr_WarnEx(PyExc_RuntimeWarning, note.c_str(), 1) != 0) throw nb::python_error();
}

/// A warning for each note, once: each run may say the same.
std::function<void(const std::string&)> note_as_warning() {
  return [said = std::make_shared<std::set<std::string>>()](const std::string& note) {
    if (!said->insert(note).second) return;
    const nb::gil_scoped_acquire with_gil;
    warn(note);
  };
}

/// Runs a command, several times where wanted, up to the first run that fails or is asked to stop.
std::string time_runs(const TimeOptions& options, uint64_t repeats) {
  std::vector<Run> runs;
  std::vector<RunSummary> summaries;
  for (uint64_t i = 0; i < repeats; ++i) {
    const RunInfo info = time_command(options);
    runs.push_back(read_run(info.directory));
    runs.back().info = info;  // also where the disk was full
    summaries.push_back(summarise(runs.back()));
    if (info.exit_status != 0 || info.asked_to_stop) break;
  }
  return to_text(time_document(runs, summaries));
}

nb::object time_it(const nb::list& command, nb::handle directory, bool hook, nb::handle pattern,
                   uint64_t repeats) {
  TimeOptions options;
  options.command = words_of(command);
  options.directory = to_path(directory);
  options.hook = hook;
  options.pattern = pattern.is_none() ? "" : to_bytes(pattern);
  options.each_note = note_as_warning();
  std::string text;
  {
    const nb::gil_scoped_release without_gil;
    text = time_runs(options, repeats);
  }
  return to_str(text);
}

ScaleAxis axis_of(const std::string& name) {
  for (const ScaleAxis axis :
       {ScaleAxis::threads, ScaleAxis::procs, ScaleAxis::gpus, ScaleAxis::nodes}) {
    if (name_of(axis) == name) return axis;
  }
  throw Error(ErrorKind::usage, "how many of what? One of threads, procs, gpus, nodes");
}

nb::object scale(const nb::list& command, const std::string& axis,
                 const std::vector<uint64_t>& widths, nb::handle directory, uint64_t repeats,
                 bool weak, bool pin, bool hook, nb::handle pattern, std::optional<uint64_t> seed,
                 const std::vector<uint64_t>& predict) {
  ScaleOptions options;
  options.axis = axis_of(axis);
  options.widths = widths;
  options.command = words_of(command);
  options.directory = to_path(directory);
  options.repeats = repeats;
  options.weak = weak;
  options.pin = pin;
  options.hook = hook;
  options.pattern = pattern.is_none() ? "" : to_bytes(pattern);
  options.seed = seed;
  options.each_note = note_as_warning();
  std::string text;
  {
    const nb::gil_scoped_release without_gil;
    const ScalePlan plan = plan_scale(options);
    const ScaleResult result = run_scale(plan, Progress());
    text = to_text(scale_document(plan, result, analyse_scale(result, options.axis, predict)));
  }
  return to_str(text);
}

}  // namespace

void bind_measure(nb::module_& module) {
  module.def(
      "begin_run",
      [](const std::string& directory, const std::vector<std::string>& command) {
        std::string note;
        const RunInfo info = begin_run(directory, command, note);
        if (!note.empty()) warn(note);
        return info.directory;
      },
      nb::arg("directory"), nb::arg("command"));
  module.def(
      "run_summary",
      [](const std::string& directory) {
        const Run run = read_run(directory);
        return run_document(run, summarise(run)).dump();
      },
      nb::arg("directory"), nb::call_guard<nb::gil_scoped_release>());
  // These wait for every child of the process that calls them and take its signals: the package
  // calls them in a process of their own.
  module.def("time", &time_it, nb::arg("command"), nb::arg("directory").none(), nb::arg("hook"),
             nb::arg("pattern").none(), nb::arg("repeats"),
             nb::sig("def time(command: list[str | bytes], directory: object | None, hook: bool, "
                     "pattern: str | None, repeats: int) -> str"));
  module.def("scale", &scale, nb::arg("command"), nb::arg("axis"), nb::arg("widths"),
             nb::arg("directory").none(), nb::arg("repeats"), nb::arg("weak"), nb::arg("pin"),
             nb::arg("hook"), nb::arg("pattern").none(), nb::arg("seed").none(), nb::arg("predict"),
             nb::sig("def scale(command: list[str | bytes], axis: str, widths: list[int], "
                     "directory: object | None, repeats: int, weak: bool, pin: bool, hook: bool, "
                     "pattern: str | None, seed: int | None, predict: list[int]) -> str"));
}

}  // namespace stoker::python
