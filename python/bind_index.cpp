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

nb::dict index(nb::handle path, bool full, const std::string& row_index, const std::string& where,
               unsigned jobs, nb::handle list) {
  const std::string dataset = to_path(path);
  IndexOptions options;
  options.depth = full ? Depth::full : Depth::structure;
  options.row_index = parse_row_index(row_index);
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
  dict["unused"] = to_list(result.unused);
  dict["faults"] = to_list(result.faults);
  dict["row_index"] = to_dict(result.row_index);
  return dict;
}

nb::dict to_dict(const RowIndexSummary& summary) {
  nb::dict dict;
  dict["photos"] = summary.all();
  dict["indexed"] = summary.indexed();
  dict["bytes"] = summary.bytes;
  dict["percent"] = summary.percent();
  std::array<uint64_t, kDecodePaths> left = summary.photos;
  left[static_cast<size_t>(DecodePath::indexed)] = 0;
  dict["left"] = by_decoder(left);
  return dict;
}

nb::dict by_decoder(const std::array<uint64_t, kDecodePaths>& photos) {
  nb::dict dict;
  for (size_t i = 0; i < photos.size(); ++i) {
    if (photos[i] != 0) dict[to_str(kDecodePathNames[i])] = photos[i];
  }
  return dict;
}

void bind_index(nb::module_& module) {
  module.def("index", &index, nb::arg("path"), nb::arg("full"), nb::arg("row_index"),
             nb::arg("where"), nb::arg("jobs"), nb::arg("list").none(),
             nb::sig("def index(path: object, full: bool, row_index: str, where: str, jobs: int, "
                     "list: object | None) -> dict[str, typing.Any]"));
}

}  // namespace stoker::python
