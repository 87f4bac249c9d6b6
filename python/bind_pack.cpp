// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "base/units.h"
#include "bind.h"
#include "convert.h"
#include "interruptible.h"
#include "pack/pack.h"

namespace nb = nanobind;

namespace stoker::python {
namespace {

std::vector<std::string> names(const nb::list& list) {
  std::vector<std::string> names;
  for (const nb::handle name : list) names.push_back(to_bytes(name));
  return names;
}

nb::dict result_of(const PackResult& result) {
  nb::dict dict;
  dict["source_format"] = to_str(result.source_format);
  dict["format"] = to_str(result.format);
  dict["samples"] = result.samples;
  dict["shards"] = result.shards;
  dict["bytes"] = result.bytes;
  dict["payload_bytes"] = result.payload_bytes;
  nb::list datasets;
  for (const std::string& path : result.datasets) datasets.append(from_path(path));
  dict["datasets"] = datasets;
  dict["shards_reused"] = result.shards_reused;
  dict["already_complete"] = result.already_complete;
  dict["filtered"] = result.filtered;
  dict["hidden"] = result.hidden;
  dict["unlisted"] = result.unlisted;
  dict["unused"] = to_list(result.unused);
  dict["left_out"] = to_list(result.left_out);
  nb::list lossy;
  for (const std::string& loss : result.lossy) lossy.append(to_str(loss));
  dict["lossy"] = lossy;
  dict["row_index"] = to_dict(result.row_index);
  dict["seconds"] = result.seconds;
  return dict;
}

nb::dict pack(nb::handle source, nb::handle destination, const std::string& to,
              const std::string& shard_size, unsigned jobs, std::optional<uint64_t> shuffle,
              nb::handle split, const nb::list& include, const nb::list& exclude,
              std::optional<uint64_t> limit, nb::handle list, bool lossy,
              const std::string& compress, const std::string& row_index, bool overwrite,
              bool skip_bad) {
  const std::string from = to_path(source), into = to_path(destination);
  PackOptions options;
  options.to = to;
  options.shard_size = to_size("shard_size", shard_size);
  options.jobs = jobs;
  options.shuffle = shuffle;
  if (!split.is_none()) options.split = parse_split(to_bytes(split));
  options.include = names(include);
  options.exclude = names(exclude);
  options.limit = limit;
  options.list = to_path(list);
  options.lossy = lossy;
  options.compress = compress;
  options.row_index = parse_row_index(row_index);
  options.overwrite = overwrite;
  options.skip_bad = skip_bad;
  return result_of(run_interruptible([&](Progress& progress) {
    options.progress = &progress;
    return stoker::pack(from, into, options);
  }));
}

}  // namespace

void bind_pack(nb::module_& module) {
  module.def("pack", &pack, nb::arg("source"), nb::arg("destination"), nb::arg("to"),
             nb::arg("shard_size"), nb::arg("jobs"), nb::arg("shuffle").none(),
             nb::arg("split").none(), nb::arg("include"), nb::arg("exclude"),
             nb::arg("limit").none(), nb::arg("list").none(), nb::arg("lossy"), nb::arg("compress"),
             nb::arg("row_index"), nb::arg("overwrite"), nb::arg("skip_bad"),
             nb::sig("def pack(source: object, destination: object, to: str, shard_size: str, "
                     "jobs: int, shuffle: int | None, split: str | None, "
                     "include: collections.abc.Sequence[str | bytes], "
                     "exclude: collections.abc.Sequence[str | bytes], limit: int | None, "
                     "list: object | None, lossy: bool, compress: str, row_index: str, "
                     "overwrite: bool, skip_bad: bool) -> "
                     "dict[str, typing.Any]"));
}

}  // namespace stoker::python
