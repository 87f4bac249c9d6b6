// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <utility>

#include "base/text.h"
#include "bind.h"
#include "column.h"
#include "convert.h"
#include "dataset.h"
#include "dataset/recorded_faults.h"
#include "index/build_index.h"
#include "interruptible.h"
#include "sample_iterator.h"

namespace nb = nanobind;

namespace stoker::python {
namespace {

/// From a tuple of its two paths; nothing from None.
std::optional<StagedRoot> staged_root(nb::handle staged) {
  if (staged.is_none()) return std::nullopt;
  const auto paths = nb::cast<nb::tuple>(staged);
  return StagedRoot{to_path(paths[0]), to_path(paths[1])};
}

/// The dataset, and how its index was made where that was necessary.
nb::tuple open(nb::handle path, nb::handle list, unsigned jobs, bool verify, nb::handle staged) {
  IndexOptions options;
  options.list = to_path(list);
  options.jobs = jobs;
  const std::string where = to_path(path);
  OpenedDataset opened = run_interruptible([&](Progress& progress) {
    options.progress = &progress;
    return open_dataset(where, options);
  });
  nb::object built = nb::none();
  if (opened.built) built = to_dict(opened.result);
  return nb::make_tuple(std::make_unique<Dataset>(std::move(opened.index), std::move(opened.paths),
                                                  verify, staged_root(staged)),
                        built);
}

/// The same in another process, which is told where the index is.
void reopen(Dataset* dataset, nb::handle path, nb::handle index_directory, bool verify,
            nb::handle staged) {
  const std::string where = to_path(path), directory = to_path(index_directory);
  std::shared_ptr<const Index> index;
  DatasetPaths paths;
  {
    const nb::gil_scoped_release without_gil;
    paths = DatasetPaths::of(where);
    index = std::make_shared<const Index>(directory);
  }
  new (dataset) Dataset(std::move(index), std::move(paths), verify, staged_root(staged));
}

nb::object find(const Dataset& dataset, nb::handle key) {
  const std::string bytes = to_bytes(key);
  std::optional<uint64_t> sample;
  {
    const nb::gil_scoped_release without_gil;
    sample = dataset.index().find(bytes);
  }
  return sample ? nb::object(nb::int_(*sample)) : nb::object(nb::none());
}

nb::list keys(const Dataset& dataset, const std::vector<uint64_t>& samples) {
  std::vector<std::string> keys;
  {
    const nb::gil_scoped_release without_gil;
    for (const uint64_t sample : samples) keys.push_back(dataset.index().key(sample));
  }
  return to_list(keys);
}

nb::list read_many(const Dataset& dataset, const std::vector<uint64_t>& samples,
                   const std::optional<nb::list>& fields) {
  std::vector<std::string> names;
  if (fields) {
    for (const nb::handle name : *fields) names.push_back(to_bytes(name));
  }
  return dataset.read_many(samples, names);
}

template <typename T>
nb::object to_numpy(std::vector<T> values) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  const size_t shape[] = {owned->size()};
  T* data = owned->data();
  const nb::capsule owner(
      owned.release(), [](void* memory) noexcept { delete static_cast<std::vector<T>*>(memory); });
  return nb::cast(nb::ndarray<nb::numpy, T>(data, 1, shape, owner));
}

/// The numbers, and the positions of samples that have none.
nb::tuple column(const Dataset& dataset, nb::handle name, uint64_t first, int64_t step,
                 uint64_t count) {
  const std::string field = to_bytes(name);
  Column column;
  {
    const nb::gil_scoped_release without_gil;
    column = read_column(dataset, field, {first, step, count});
  }
  nb::object numbers =
      column.is_real ? to_numpy(std::move(column.reals)) : to_numpy(std::move(column.integers));
  return nb::make_tuple(numbers, to_numpy(std::move(column.absent)));
}

/// Path and size of the shards that begin in a segment.
nb::list shards(const Dataset& dataset, uint32_t segment) {
  std::vector<std::pair<std::string, uint64_t>> found;
  {
    const nb::gil_scoped_release without_gil;
    found = shards_of_segment(dataset, segment);
  }
  nb::list list;
  for (const auto& [path, size] : found) list.append(nb::make_tuple(from_path(path), size));
  return list;
}

nb::list faults(const Dataset& dataset) {
  std::vector<Fault> recorded;
  {
    const nb::gil_scoped_release without_gil;
    recorded = recorded_faults(dataset.index());
  }
  return to_list(recorded);
}

nb::list shard_counts(const Dataset& dataset) {
  nb::list counts;
  for (const SegmentEntry& entry : dataset.index().manifest().segments) {
    counts.append(entry.shards);
  }
  return counts;
}

}  // namespace

void bind_dataset(nb::module_& module) {
  nb::class_<SampleIterator>(module, "SampleIterator")
      .def(
          "__iter__", [](nb::handle self) { return self; },
          nb::sig("def __iter__(self) -> SampleIterator"))
      .def("__next__", &SampleIterator::next,
           nb::sig("def __next__(self) -> dict[str, typing.Any]"));

  nb::class_<Dataset>(module, "Dataset")
      .def("__init__", &reopen, nb::arg("path"), nb::arg("index_directory"), nb::arg("verify"),
           nb::arg("staged").none())
      .def("__len__", [](const Dataset& dataset) { return dataset.index().size(); })
      .def("read", &Dataset::read, nb::arg("sample"),
           nb::sig("def read(self, sample: int) -> dict[str, typing.Any]"))
      .def("read_many", &read_many, nb::arg("samples"), nb::arg("fields").none(),
           nb::sig("def read_many(self, samples: collections.abc.Sequence[int], "
                   "fields: list[str] | None) -> list[dict[str, typing.Any]]"))
      .def(
          "iterate",
          [](const Dataset& dataset, uint64_t first, int64_t step, uint64_t count) {
            return std::make_unique<SampleIterator>(dataset, Range{first, step, count});
          },
          nb::arg("first"), nb::arg("step"), nb::arg("count"), nb::keep_alive<0, 1>())
      .def("column", &column, nb::arg("name"), nb::arg("first"), nb::arg("step"), nb::arg("count"),
           nb::sig("def column(self, name: str, first: int, step: int, count: int) -> "
                   "tuple[numpy.typing.NDArray[typing.Any], numpy.typing.NDArray[numpy.int64]]"))
      .def("find", &find, nb::arg("key"), nb::sig("def find(self, key: str | bytes) -> int | None"))
      .def("keys", &keys, nb::arg("samples"),
           nb::sig("def keys(self, samples: collections.abc.Sequence[int]) -> list[str]"))
      .def("shards", &shards, nb::arg("segment"),
           nb::sig("def shards(self, segment: int) -> list[tuple[str, int]]"))
      .def("shard_counts", &shard_counts, nb::sig("def shard_counts(self) -> list[int]"))
      .def(
          "fields", [](const Dataset& dataset) { return to_dict(dataset.index().schema()); },
          nb::sig("def fields(self) -> dict[str, dict[str, typing.Any]]"))
      .def(
          "classes",
          [](const Dataset& dataset) { return to_list(dataset.index().schema().classes); },
          nb::sig("def classes(self) -> list[str]"))
      .def(
          "unused",
          [](const Dataset& dataset) { return to_list(dataset.index().manifest().unused); },
          nb::sig("def unused(self) -> list[str]"))
      .def_prop_ro("path", [](const Dataset& dataset) { return from_path(dataset.paths().path); })
      .def_prop_ro("index_directory",
                   [](const Dataset& dataset) { return from_path(dataset.index().directory()); })
      .def_prop_ro("format",
                   [](const Dataset& dataset) { return to_str(dataset.index().manifest().format); })
      .def_prop_ro(
          "depth",
          [](const Dataset& dataset) { return to_str(name_of(dataset.index().manifest().depth)); })
      .def("faults", &faults, nb::sig("def faults(self) -> list[dict[str, typing.Any]]"));

  module.def("open", &open, nb::arg("path"), nb::arg("list").none(), nb::arg("jobs"),
             nb::arg("verify"), nb::arg("staged").none(),
             nb::sig("def open(path: object, list: object | None, jobs: int, verify: bool, "
                     "staged: tuple[str, str] | None) -> "
                     "tuple[Dataset, dict[str, typing.Any] | None]"));
}

}  // namespace stoker::python
