// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <chrono>
#include <memory>
#include <string>

#include "base/error.h"
#include "bind.h"
#include "convert.h"
#include "dataset.h"
#include "load/loader.h"

namespace nb = nanobind;

namespace stoker::python {
namespace {

OnError on_error_of(const std::string& name) {
  if (name == "raise") return OnError::raise;
  if (name == "skip") return OnError::skip;
  if (name == "replace") return OnError::replace;
  throw Error(ErrorKind::usage, "on_error '" + name + "': should be 'raise', 'skip' or 'replace'");
}

CropRecipe recipe_of(const nb::dict& given) {
  CropRecipe recipe;
  const auto number = [&](const char* name) { return nb::cast<double>(given[name]); };
  recipe.kind =
      nb::cast<bool>(given["random"]) ? CropRecipe::Kind::random : CropRecipe::Kind::whole;
  recipe.size = {nb::cast<uint32_t>(given["height"]), nb::cast<uint32_t>(given["width"])};
  const auto resample = nb::cast<std::string>(given["resample"]);
  const std::optional<Resample> filter = find_resample(resample);
  if (!filter) throw Error(ErrorKind::usage, "interpolation '" + resample + "' is not known");
  recipe.resample = *filter;
  recipe.smallest_area = number("smallest_area");
  recipe.largest_area = number("largest_area");
  recipe.smallest_ratio = number("smallest_ratio");
  recipe.largest_ratio = number("largest_ratio");
  recipe.flip = number("flip");
  return recipe;
}

void make(Loader* loader, const Dataset& dataset, uint64_t batch_size,
          std::optional<uint64_t> shuffle, uint64_t seed, uint32_t rank, uint32_t world, bool pad,
          bool drop_last, const std::string& on_error, const nb::dict& recipe, unsigned threads,
          unsigned ahead) {
  LoaderOptions options;
  options.batch_size = batch_size;
  options.shuffle = shuffle;
  options.seed = seed;
  options.ranks = {rank, world};
  options.remainder = pad ? Remainder::pad : Remainder::drop;
  options.drop_last = drop_last;
  options.on_error = on_error_of(on_error);
  options.recipe = recipe_of(recipe);
  options.threads = threads;
  options.ahead = ahead;
  new (loader) Loader(dataset.shared_index(), {dataset.paths().root}, options);
}

template <typename T>
nb::object array_of(std::shared_ptr<LoadedBatch> batch, T* data,
                    std::initializer_list<size_t> shape) {
  auto* kept = new std::shared_ptr<LoadedBatch>(std::move(batch));
  const nb::capsule owner(kept, [](void* pointer) noexcept {
    delete static_cast<std::shared_ptr<LoadedBatch>*>(pointer);
  });
  return nb::cast(nb::ndarray<nb::numpy, T>(data, shape, owner));
}

/// The arrays of a batch, which keep it alive; None at the end of the epoch.
nb::object next(Loader& loader) {
  std::shared_ptr<LoadedBatch> batch;
  for (;;) {
    Loader::Next outcome{};
    {
      const nb::gil_scoped_release released;
      outcome = loader.next(batch, std::chrono::milliseconds(50));
    }
    if (outcome == Loader::Next::end) return nb::none();
    if (outcome == Loader::Next::batch) break;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  const Size size = loader.options().recipe.size;
  nb::dict arrays;
  arrays["image"] = array_of(batch, batch->images.get(), {batch->rows, size.height, size.width, 3});
  if (!batch->labels.empty())
    arrays["label"] = array_of(batch, batch->labels.data(), {batch->rows});
  arrays["sample"] = array_of(batch, batch->samples.data(), {batch->rows});
  return nb::make_tuple(arrays, batch->position);
}

nb::dict to_dict(const StageTime& time, unsigned threads) {
  nb::dict dict;
  dict["threads"] = threads;
  dict["busy"] = time.busy;
  dict["waiting_for_input"] = time.waiting_for_input;
  dict["waiting_for_room"] = time.waiting_for_room;
  return dict;
}

nb::dict stats(const Loader& loader) {
  const LoaderStats stats = loader.stats();
  nb::dict dict;
  dict["samples"] = stats.samples;
  dict["bytes"] = stats.bytes;
  dict["seconds"] = stats.seconds;
  dict["waited"] = stats.consumer_waited;
  nb::dict stages;
  stages["fetch"] = to_dict(stats.fetch, stats.fetch_threads);
  stages["decode"] = to_dict(stats.decode, stats.decode_threads);
  dict["stages"] = stages;
  dict["bad"] = to_list(stats.bad);
  return dict;
}

}  // namespace

void bind_load(nb::module_& module) {
  nb::class_<Loader>(module, "Loader")
      .def("__init__", &make, nb::arg("dataset"), nb::arg("batch_size"), nb::arg("shuffle").none(),
           nb::arg("seed"), nb::arg("rank"), nb::arg("world"), nb::arg("pad"), nb::arg("drop_last"),
           nb::arg("on_error"), nb::arg("recipe"), nb::arg("threads"), nb::arg("ahead"),
           nb::sig("def __init__(self, dataset: Dataset, batch_size: int, shuffle: int | None, "
                   "seed: int, rank: int, world: int, pad: bool, drop_last: bool, on_error: str, "
                   "recipe: dict[str, object], threads: int, ahead: int) -> None"))
      .def("start", &Loader::start, nb::arg("epoch"), nb::arg("position"),
           nb::call_guard<nb::gil_scoped_release>())
      .def("batches", &Loader::batches, nb::arg("position"))
      .def("next", &next, nb::sig("def next(self) -> tuple[dict[str, typing.Any], int] | None"))
      .def("stats", &stats, nb::sig("def stats(self) -> dict[str, typing.Any]"));
}

}  // namespace stoker::python
