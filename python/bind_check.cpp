// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>

#include <string>

#include "bind.h"
#include "check/check.h"
#include "convert.h"
#include "interruptible.h"

namespace nb = nanobind;

namespace stoker::python {
namespace {

nb::object to_object(const std::optional<Comparison>& comparison) {
  if (!comparison) return nb::none();
  nb::dict dict;
  dict["equal"] = comparison->equal;
  dict["compared"] = comparison->compared;
  dict["only_here"] = comparison->only_here;
  dict["only_there"] = comparison->only_there;
  dict["different"] = comparison->different;
  dict["examples"] = to_list(comparison->examples);
  return dict;
}

nb::dict sizes_of(const CheckResult& result) {
  nb::dict dict;
  for (size_t i = 0; i < result.field_sizes.size() && i < result.schema.fields.size(); ++i) {
    const FieldSizes& of_field = result.field_sizes[i];
    nb::dict sizes;
    sizes["total"] = of_field.total;
    sizes["smallest"] = of_field.smallest;
    sizes["median"] = of_field.median;
    sizes["largest"] = of_field.largest;
    dict[to_str(result.schema.fields[i].name)] = sizes;
  }
  return dict;
}

nb::dict result_of(const CheckResult& result) {
  nb::dict dict;
  dict["good"] = result.good();
  dict["path"] = from_path(result.path);
  dict["format"] = to_str(result.format);
  dict["samples"] = result.samples;
  dict["shards"] = result.shards;
  dict["bytes"] = result.bytes;
  nb::object depth = nb::none(), directory = nb::none();
  if (result.index_depth) {
    depth = to_str(name_of(*result.index_depth));
    directory = from_path(result.index_directory);
  }
  dict["index_depth"] = depth;
  dict["index_directory"] = directory;
  dict["fields"] = to_dict(result.schema);
  dict["sizes"] = sizes_of(result);
  nb::dict classes;
  for (const ClassCount& count : result.classes) classes[to_str(count.name)] = count.samples;
  dict["classes"] = classes;
  dict["hidden"] = result.hidden;
  dict["unlisted"] = result.unlisted;
  dict["unused"] = to_list(result.unused);
  dict["left_out"] = result.left_out;
  dict["row_index"] = to_dict(result.row_index);
  dict["verified_bytes"] = result.verified_bytes;
  dict["checksums_compared"] = result.checksums_compared;
  dict["fault_count"] = result.fault_count;
  dict["faults"] = to_list(result.faults);
  dict["comparison"] = to_object(result.comparison);
  dict["seconds"] = result.seconds;
  return dict;
}

nb::dict check(nb::handle path, bool quick, nb::handle compare, bool ignore_keys, unsigned jobs,
               nb::handle list) {
  const std::string dataset = to_path(path);
  CheckOptions options;
  options.quick = quick;
  options.compare = to_path(compare);
  options.ignore_keys = ignore_keys;
  options.jobs = jobs;
  options.list = to_path(list);
  return result_of(run_interruptible([&](Progress& progress) {
    options.progress = &progress;
    return stoker::check(dataset, options);
  }));
}

}  // namespace

void bind_check(nb::module_& module) {
  module.def("check", &check, nb::arg("path"), nb::arg("quick"), nb::arg("compare").none(),
             nb::arg("ignore_keys"), nb::arg("jobs"), nb::arg("list").none(),
             nb::sig("def check(path: object, quick: bool, compare: object | None, "
                     "ignore_keys: bool, jobs: int, list: object | None) -> "
                     "dict[str, typing.Any]"));
}

}  // namespace stoker::python
