// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "base/text.h"
#include "bind.h"
#include "convert.h"
#include "index/build_index.h"
#include "interruptible.h"

namespace nb = nanobind;

namespace stoker::python {
namespace {

IndexWhere where_of(const std::string& name) {
  if (name.empty()) return IndexWhere::automatic;
  if (name == "beside") return IndexWhere::beside;
  if (name == "cache") return IndexWhere::cache;
  throw Error(ErrorKind::usage,
              fmt::format("where '{}': should be beside or cache", printable(name)));
}

nb::dict index(nb::handle path, bool full, const std::string& where, unsigned jobs,
               nb::handle list) {
  const std::string dataset = to_path(path);
  IndexOptions options;
  options.depth = full ? Depth::full : Depth::structure;
  options.where = where_of(where);
  options.jobs = jobs;
  options.list = to_path(list);
  return to_dict(run_interruptible([&](Progress& progress) {
    options.progress = &progress;
    return build_index(dataset, options);
  }));
}

}  // namespace

nb::dict to_dict(const IndexResult& result) {
  nb::dict dict;
  dict["format"] = to_str(result.format);
  dict["depth"] = to_str(name_of(result.depth));
  dict["directory"] = from_path(result.directory);
  dict["in_cache"] = result.in_cache;
  dict["samples"] = result.samples;
  dict["shards"] = result.shards;
  dict["bytes"] = result.bytes;
  dict["segments_reused"] = result.segments_reused;
  dict["hidden"] = result.hidden;
  dict["unlisted"] = result.unlisted;
  dict["faults"] = to_list(result.faults);
  return dict;
}

void bind_index(nb::module_& module) {
  module.def("index", &index, nb::arg("path"), nb::arg("full"), nb::arg("where"), nb::arg("jobs"),
             nb::arg("list").none(),
             nb::sig("def index(path: object, full: bool, where: str, jobs: int, "
                     "list: object | None) -> dict[str, typing.Any]"));
}

}  // namespace stoker::python
