// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/parallel.h"
#include "bind.h"
#include "convert.h"
#include "dataset.h"
#include "load/loader.h"
#include "recipe.h"

namespace nb = nanobind;

namespace stoker::python {
namespace {

template <typename T>
T choice(const char* option, const std::string& given,
         std::initializer_list<std::pair<const char*, T>> choices) {
  std::string known;
  for (const auto& [name, value] : choices) {
    if (name == given) return value;
    known += (known.empty() ? "'" : ", '") + std::string(name) + "'";
  }
  throw Error(ErrorKind::usage, fmt::format("{} '{}': should be one of {}", option, given, known));
}

OrderOptions order_of(const nb::dict& given) {
  OrderOptions order;
  order.kind = choice<OrderOptions::Kind>("shuffle", get<std::string>(given, "kind"),
                                          {{"sequential", OrderOptions::Kind::sequential},
                                           {"shuffled", OrderOptions::Kind::shuffled},
                                           {"blocks", OrderOptions::Kind::blocks}});
  order.seed = get<uint64_t>(given, "seed");
  order.subset = get<std::vector<uint64_t>>(given, "subset");
  order.weights = get<std::vector<double>>(given, "weights");
  for (auto& [share, members] :
       get<std::vector<std::pair<double, std::vector<uint64_t>>>>(given, "groups")) {
    order.groups.push_back({share, std::move(members)});
  }
  return order;
}

void make(Loader* loader, const std::vector<const Dataset*>& datasets, const nb::dict& given) {
  LoaderOptions options;
  options.batch_size = get<uint64_t>(given, "batch_size");
  options.order = order_of(get<nb::dict>(given, "order"));
  options.seed = options.order.seed;
  options.ranks = {get<uint32_t>(given, "rank"), get<uint32_t>(given, "world")};
  options.remainder = choice<Remainder>("uneven", get<std::string>(given, "uneven"),
                                        {{"pad", Remainder::pad}, {"drop", Remainder::drop}});
  options.drop_last = get<bool>(given, "drop_last");
  options.on_error = choice<OnError>(
      "on_error", get<std::string>(given, "on_error"),
      {{"raise", OnError::raise}, {"skip", OnError::skip}, {"replace", OnError::replace}});
  options.block_bytes = to_size("block_size", get<std::string>(given, "block_size"));
  options.window_bytes = to_size("window_size", get<std::string>(given, "window_size"));
  for (const nb::handle field : get<nb::list>(given, "fields")) {
    options.fields.push_back(to_bytes(field));
  }
  for (const auto& [from, to] :
       get<std::vector<std::pair<nb::object, nb::object>>>(given, "renamed")) {
    options.renamed.push_back({to_bytes(from), to_bytes(to)});
  }
  options.image = to_bytes(get<nb::object>(given, "image"));
  const bool like_pillow = choice<bool>("on_corrupt", get<std::string>(given, "on_corrupt"),
                                        {{"raise", false}, {"like_pillow", true}});
  if (!given["picture"].is_none()) {
    options.picture = picture_recipe_of(get<nb::dict>(given, "picture"));
    options.picture->like_pillow = like_pillow;
  }
  for (auto& [name, value] : get<std::vector<std::pair<std::string, double>>>(given, "padded")) {
    options.padded.push_back({std::move(name), value});
  }
  if (!given["cache"].is_none()) {
    const auto [directory, limit] = get<std::pair<nb::object, std::string>>(given, "cache");
    options.cache = {to_path(directory), to_size("cache_limit", limit)};
  }
  options.threads = get<unsigned>(given, "threads");
  options.ahead = get<unsigned>(given, "ahead");
  options.pinned = get<bool>(given, "pinned");
  std::vector<LoadSource> sources;
  for (const Dataset* dataset : datasets) {
    sources.push_back({dataset->shared_index(),
                       {dataset->paths().root},
                       dataset->staged(),
                       dataset->paths().path});
  }
  new (loader) Loader(sources, std::move(options));
}

/// Keeps `batch` alive.
nb::capsule owner_of(const std::shared_ptr<LoadedBatch>& batch) {
  auto* kept = new std::shared_ptr<LoadedBatch>(batch);
  return {kept, [](void* pointer) noexcept {
            delete static_cast<std::shared_ptr<LoadedBatch>*>(pointer);
          }};
}

/// NumPy has no bfloat16: it comes as the uint16 of its bits.
nb::dlpack::dtype dtype_of(std::string_view element) {
  using Code = nb::dlpack::dtype_code;
  const auto bits = static_cast<uint8_t>(8 * element_size(element));
  if (element == "bool") return {static_cast<uint8_t>(Code::Bool), 8, 1};
  if (element == "bfloat16" || element.starts_with("uint")) {
    return {static_cast<uint8_t>(Code::UInt), bits, 1};
  }
  if (element.starts_with("int")) return {static_cast<uint8_t>(Code::Int), bits, 1};
  return {static_cast<uint8_t>(Code::Float), bits, 1};
}

nb::object array_of(const std::shared_ptr<LoadedBatch>& batch, void* data,
                    const std::vector<size_t>& shape, std::string_view element) {
  return nb::cast(nb::ndarray<nb::numpy>(data, shape.size(), shape.data(), owner_of(batch), nullptr,
                                         dtype_of(element)));
}

nb::object value_of(const std::shared_ptr<LoadedBatch>& batch, RowValue& value) {
  if (!value.present) return nb::none();
  const auto* text = reinterpret_cast<const char*>(value.bytes.data());
  if (value.type == FieldType::text) return to_str({text, value.bytes.size()});
  if (value.type == FieldType::array) {
    const std::vector<size_t> shape(value.shape.begin(), value.shape.end());
    return array_of(batch, value.bytes.data(), shape, name_of(value.dtype));
  }
  if (value.type != FieldType::list) return nb::bytes(text, value.bytes.size());
  nb::list list;
  size_t begin = 0;
  for (const size_t end : value.ends) {
    list.append(nb::bytes(text + begin, end - begin));
    begin = end;
  }
  return list;
}

nb::object column_of(const std::shared_ptr<LoadedBatch>& batch, BatchColumn& column) {
  if (column.data) {
    const std::vector<size_t> shape(column.shape.begin(), column.shape.end());
    return array_of(batch, column.data.get(), shape, column.element);
  }
  nb::list values;
  for (RowValue& value : column.values) values.append(value_of(batch, value));
  return values;
}

/// The columns of a batch, which keep it alive, and where the epoch stands behind it; None at the
/// end of the epoch, False where it is not ready in time.
nb::object next(Loader& loader, double patience) {
  std::shared_ptr<LoadedBatch> batch;
  Loader::Next outcome{};
  {
    const nb::gil_scoped_release released;
    outcome = loader.next(batch, std::chrono::milliseconds(static_cast<int64_t>(patience * 1e3)));
  }
  if (outcome == Loader::Next::end) return nb::none();
  if (outcome == Loader::Next::not_yet) return nb::cast(false);
  nb::dict columns;
  for (BatchColumn& column : batch->columns)
    columns[column.name.c_str()] = column_of(batch, column);
  columns["sample"] = array_of(batch, batch->samples.data(), {batch->rows}, "int64");
  return nb::make_tuple(columns, batch->position);
}

nb::dict to_dict(const StageTime& time) {
  nb::dict dict;
  dict["threads"] = time.threads;
  dict["busy"] = time.busy;
  dict["computing"] = time.computing;
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
  dict["waited"] = stats.waited;
  dict["waiting_share"] =
      stats.seconds_behind_first > 0 ? stats.waited_behind_first / stats.seconds_behind_first : 0.0;
  nb::dict stages;
  if (stats.fetch.threads > 0) stages["fetch"] = to_dict(stats.fetch);
  if (stats.decode.threads > 0) stages["decode"] = to_dict(stats.decode);
  dict["stages"] = stages;
  dict["decoders"] = by_decoder(stats.decoders);
  dict["ahead"] = stats.ahead;
  dict["cache_hits"] = stats.cache_hits;
  dict["cache_bytes"] = stats.cache_bytes;
  dict["mixing"] = loader.order().mixing(loader.options().batch_size);
  dict["limit"] = std::string(limit_of(stats));
  dict["bad"] = to_list(stats.bad);
  dict["damaged"] = to_list(stats.damaged);
  return dict;
}

}  // namespace

void bind_load(nb::module_& module) {
  nb::class_<Loader>(module, "Loader")
      .def("__init__", &make, nb::arg("datasets"), nb::arg("options"),
           nb::sig("def __init__(self, datasets: list[Dataset], options: dict[str, object]) -> "
                   "None"))
      .def("start", &Loader::start, nb::arg("epoch"), nb::arg("position"),
           nb::call_guard<nb::gil_scoped_release>())
      .def("batches", &Loader::batches, nb::arg("position"))
      .def("next", &next, nb::arg("patience"),
           nb::sig("def next(self, patience: float) -> tuple[dict[str, typing.Any], int] | bool | "
                   "None"))
      .def("turns", [](const Loader& loader) { return loader.order().size(); })
      .def("fingerprint", [](const Loader& loader) { return loader.order().fingerprint(); })
      .def("data_fingerprint", [](const Loader& loader) { return loader.sources().fingerprint(); })
      .def(
          "key",
          [](const Loader& loader, uint64_t sample) {
            return to_str(loader.sources().key(sample));
          },
          nb::arg("sample"), nb::sig("def key(self, sample: int) -> str"))
      .def("stats", &stats, nb::sig("def stats(self) -> dict[str, typing.Any]"))
      .def("verdict",
           [](const Loader& loader) { return verdict_of(loader.stats(), usable_cores()); });
}

}  // namespace stoker::python
