// SPDX-License-Identifier: Apache-2.0
#include "bind_augment.h"

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstring>
#include <memory>
#include <string>
#include <tuple>

#include "base/error.h"
#include "bind.h"
#include "convert.h"
#include "image/mix.h"

namespace nb = nanobind;

namespace stoker::python {
namespace {

NumberRange range_of(const std::pair<double, double>& pair) { return {pair.first, pair.second}; }

std::optional<NumberRange> maybe_range(const nb::dict& given, const char* name) {
  const auto pair = get<std::optional<std::pair<double, double>>>(given, name);
  return pair ? std::optional(range_of(*pair)) : std::nullopt;
}

WarpOptions warp_of(const nb::dict& given) {
  WarpOptions warp;
  const auto name = get<std::string>(given, "interpolation");
  const std::optional<Resample> filter = find_resample(name);
  if (!filter || *filter == Resample::box || *filter == Resample::lanczos) {
    throw Error(ErrorKind::usage, fmt::format("interpolation '{}': should be 'nearest', 'bilinear' "
                                              "or 'bicubic'",
                                              name));
  }
  warp.interpolation = *filter;
  warp.fill = get<std::array<uint8_t, 3>>(given, "fill");
  return warp;
}

uint32_t bins_of(const nb::dict& given) {
  const auto bins = get<uint32_t>(given, "num_magnitude_bins");
  if (bins < 2) {
    throw Error(ErrorKind::usage, fmt::format("num_magnitude_bins {}: should be 2 or more", bins));
  }
  return bins;
}

RandAugment rand_augment_of(const nb::dict& given) {
  const RandAugment step{get<uint32_t>(given, "num_ops"), get<uint32_t>(given, "magnitude"),
                         bins_of(given), warp_of(given)};
  if (step.magnitude >= step.num_magnitude_bins) {
    throw Error(ErrorKind::usage, fmt::format("magnitude {}: should be below {}", step.magnitude,
                                              step.num_magnitude_bins));
  }
  return step;
}

AugmentationStep step_of(const nb::dict& given) {
  const auto name = get<std::string>(given, "step");
  if (name == "ColorJitter") {
    return ColorJitter{maybe_range(given, "brightness"), maybe_range(given, "contrast"),
                       maybe_range(given, "saturation"), maybe_range(given, "hue")};
  }
  if (name == "RandAugment") return rand_augment_of(given);
  if (name == "TrivialAugmentWide") return TrivialAugmentWide{bins_of(given), warp_of(given)};
  if (name == "RandomHorizontalFlip") return RandomHorizontalFlip{get<double>(given, "p")};
  if (name == "RandomVerticalFlip") return RandomVerticalFlip{get<double>(given, "p")};
  if (name == "RandomGrayscale") return RandomGrayscale{get<double>(given, "p")};
  throw Error(ErrorKind::usage, fmt::format("step '{}' is not known", name));
}

PixelType pixel_type_of(const std::string& name) {
  const std::optional<PixelType> type = find_pixel_type(name);
  if (type) return *type;
  throw Error(ErrorKind::usage,
              fmt::format("dtype '{}': should be uint8, float32, float16 or bfloat16", name));
}

PixelLayout layout_of(const std::string& name) {
  if (name == "NHWC") return PixelLayout::nhwc;
  if (name == "NCHW") return PixelLayout::nchw;
  throw Error(ErrorKind::usage, fmt::format("layout '{}': should be 'NHWC' or 'NCHW'", name));
}

// --- Each operation by itself, for the tests
// ------------------------------------------------------

using GivenPicture =
    nb::ndarray<const uint8_t, nb::shape<-1, -1, 3>, nb::c_contig, nb::device::cpu>;
using GivenBytes = nb::ndarray<const uint8_t, nb::shape<-1>, nb::c_contig, nb::device::cpu>;
using GivenRegion = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>;

Region region_of(const GivenRegion& given) {
  return {std::get<0>(given), std::get<1>(given), std::get<2>(given), std::get<3>(given)};
}

GivenRegion to_tuple(const Region& region) {
  return {region.top, region.left, region.height, region.width};
}

/// Bytes that become an array.
class NewArray {
 public:
  explicit NewArray(size_t bytes) : bytes_(std::make_unique_for_overwrite<uint8_t[]>(bytes)) {}
  NewArray(const uint8_t* data, size_t bytes) : NewArray(bytes) {
    std::memcpy(bytes_.get(), data, bytes);
  }

  uint8_t* data() { return bytes_.get(); }
  std::byte* bytes() { return reinterpret_cast<std::byte*>(bytes_.get()); }
  nb::object release(std::initializer_list<size_t> shape) {
    uint8_t* data = bytes_.release();
    const nb::capsule owner(data, [](void* memory) noexcept {
      std::unique_ptr<uint8_t[]>(static_cast<uint8_t*>(memory)).reset();
    });
    return nb::cast(nb::ndarray<nb::numpy, uint8_t>(data, shape, owner));
  }

 private:
  std::unique_ptr<uint8_t[]> bytes_;
};

Size size_of(const GivenPicture& picture) {
  return {static_cast<uint32_t>(picture.shape(0)), static_cast<uint32_t>(picture.shape(1))};
}

/// A copy of the picture on which `work` was done.
template <typename Work>
nb::object changed(const GivenPicture& given, const Work& work) {
  NewArray copy(given.data(), given.size());
  const Picture picture{copy.data(), size_of(given)};
  {
    const nb::gil_scoped_release released;
    work(picture);
  }
  return copy.release({given.shape(0), given.shape(1), 3});
}

nb::object apply_operation(const GivenPicture& picture, const std::string& name,
                           const nb::dict& parameters) {
  const std::optional<Operation> operation = find_operation(name);
  if (!operation) throw Error(ErrorKind::usage, fmt::format("operation '{}' is not known", name));
  Change change{*operation, 0, {}};
  if (parameters.contains("amount")) change.amount = get<double>(parameters, "amount");
  if (parameters.contains("interpolation")) change.warp = warp_of(parameters);
  return changed(picture, [&](const Picture& copy) { Augmenter().apply(change, copy); });
}

nb::object apply_steps(const GivenPicture& picture, const nb::list& steps, uint64_t seed,
                       uint64_t epoch, uint64_t sample) {
  const std::vector<AugmentationStep> parsed = steps_of(steps);
  return changed(picture, [&](const Picture& copy) {
    SampleRandom random(seed, epoch, sample);
    Augmenter augmenter;
    augment(parsed, random, augmenter, copy);
  });
}

/// For each of `samples`: the names and amounts of what the steps do.
nb::list draw_steps(const nb::list& steps, std::pair<uint32_t, uint32_t> size, uint64_t seed,
                    uint64_t samples) {
  const std::vector<AugmentationStep> parsed = steps_of(steps);
  nb::list drawn;
  for (uint64_t sample = 0; sample < samples; ++sample) {
    SampleRandom random(seed, 0, sample);
    nb::list changes;
    for (const Change& change : draw_changes(parsed, {size.first, size.second}, random)) {
      const std::string name(name_of(change.operation));
      changes.append(nb::make_tuple(name, change.amount));
    }
    drawn.append(changes);
  }
  return drawn;
}

nb::list draw_erasings(const nb::dict& erasing, std::pair<uint32_t, uint32_t> size, uint64_t seed,
                       uint64_t samples) {
  const RandomErasing parsed = erasing_of(erasing);
  nb::list drawn;
  for (uint64_t sample = 0; sample < samples; ++sample) {
    SampleRandom random(seed, 0, sample);
    const std::optional<Region> region = draw_erasing(parsed, {size.first, size.second}, random);
    drawn.append(region ? nb::cast(to_tuple(*region)) : nb::none());
  }
  return drawn;
}

nb::list draw_betas(double alpha, uint64_t seed, uint64_t samples) {
  nb::list drawn;
  for (uint64_t sample = 0; sample < samples; ++sample) {
    SampleRandom random(seed, 0, sample);
    drawn.append(draw_beta(alpha, random));
  }
  return drawn;
}

nb::list draw_cut_mixes(double alpha, std::pair<uint32_t, uint32_t> size, uint64_t seed,
                        uint64_t samples) {
  nb::list drawn;
  for (uint64_t sample = 0; sample < samples; ++sample) {
    SampleRandom random(seed, 0, sample);
    const CutMixDraw cut = draw_cut_mix(alpha, {size.first, size.second}, random);
    drawn.append(nb::make_tuple(to_tuple(cut.region), cut.lambda));
  }
  return drawn;
}

nb::object finish(const GivenPicture& given, const nb::dict& options) {
  const Finisher finisher(finish_options_of(options));
  NewArray copy(given.data(), given.size());
  const size_t bytes = given.size() * size_of(finisher.options().type);
  NewArray out(bytes);
  finisher.run({copy.data(), size_of(given)}, out.bytes());
  return out.release({bytes});
}

/// `rows` pictures of one form; a copy of them on which `work` was done.
template <typename Work>
nb::object changed_batch(const GivenBytes& given, const nb::dict& form, const Work& work) {
  NewArray copy(given.data(), given.size());
  PictureBatch batch;
  batch.rows = get<uint64_t>(form, "rows");
  batch.first = {copy.bytes(),
                 {get<uint32_t>(form, "height"), get<uint32_t>(form, "width")},
                 pixel_type_of(get<std::string>(form, "dtype")),
                 layout_of(get<std::string>(form, "layout"))};
  if (batch.rows * batch.first.bytes() != given.size()) {
    throw Error(ErrorKind::usage, "these are not the bytes of such pictures");
  }
  work(batch);
  return copy.release({given.size()});
}

nb::object mix_pictures(const GivenBytes& given, const nb::dict& form, double lambda) {
  return changed_batch(given, form, [&](const PictureBatch& batch) { mix_up(batch, lambda); });
}

nb::object cut_pictures(const GivenBytes& given, const nb::dict& form, const GivenRegion& region) {
  return changed_batch(given, form,
                       [&](const PictureBatch& batch) { cut_mix(batch, region_of(region)); });
}

/// Of the first row; noise of a seed where no value is given.
nb::object erase_region(const GivenBytes& given, const nb::dict& form, const GivenRegion& region,
                        const std::optional<std::array<float, 3>>& value, uint64_t seed) {
  return changed_batch(given, form, [&](const PictureBatch& batch) {
    if (value) return erase(batch.first, region_of(region), *value);
    SampleRandom random(seed, 0, 0);
    NormalRandom normal(random);
    erase(batch.first, region_of(region), [&] { return static_cast<float>(normal()); });
  });
}

}  // namespace

std::vector<AugmentationStep> steps_of(const nb::list& steps) {
  std::vector<AugmentationStep> parsed;
  for (const nb::handle step : steps) parsed.push_back(step_of(nb::cast<nb::dict>(step)));
  return parsed;
}

RandomErasing erasing_of(const nb::dict& given) {
  RandomErasing erasing;
  erasing.p = get<double>(given, "p");
  erasing.scale = range_of(get<std::pair<double, double>>(given, "scale"));
  erasing.ratio = range_of(get<std::pair<double, double>>(given, "ratio"));
  erasing.value = get<std::optional<std::array<float, 3>>>(given, "value");
  return erasing;
}

FinishOptions finish_options_of(const nb::dict& given) {
  FinishOptions options;
  options.type = pixel_type_of(get<std::string>(given, "dtype"));
  options.layout = layout_of(get<std::string>(given, "layout"));
  options.scale = get<bool>(given, "scale");
  const auto mean = get<std::optional<std::array<float, 3>>>(given, "mean");
  const auto deviation = get<std::optional<std::array<float, 3>>>(given, "std");
  if (mean && deviation) options.normalize = {*mean, *deviation};
  return options;
}

void bind_augment(nb::module_& module) {
  using namespace nb::literals;  // NOLINT(google-build-using-namespace): the scope of one function
  module.def("apply_operation", &apply_operation, "picture"_a, "name"_a, "parameters"_a,
             nb::sig("def apply_operation(picture: typing.Any, name: str, parameters: dict[str, "
                     "object]) -> typing.Any"));
  module.def("apply_steps", &apply_steps, "picture"_a, "steps"_a, "seed"_a, "epoch"_a, "sample"_a,
             nb::sig("def apply_steps(picture: typing.Any, steps: list[dict[str, object]], seed: "
                     "int, epoch: int, sample: int) -> typing.Any"));
  module.def("draw_steps", &draw_steps, "steps"_a, "size"_a, "seed"_a, "samples"_a,
             nb::sig("def draw_steps(steps: list[dict[str, object]], size: tuple[int, int], seed: "
                     "int, samples: int) -> list[list[tuple[str, float]]]"));
  module.def("draw_erasings", &draw_erasings, "erasing"_a, "size"_a, "seed"_a, "samples"_a,
             nb::sig("def draw_erasings(erasing: dict[str, object], size: tuple[int, int], seed: "
                     "int, samples: int) -> list[tuple[int, int, int, int] | None]"));
  module.def("draw_betas", &draw_betas, "alpha"_a, "seed"_a, "samples"_a,
             nb::sig("def draw_betas(alpha: float, seed: int, samples: int) -> list[float]"));
  module.def("draw_cut_mixes", &draw_cut_mixes, "alpha"_a, "size"_a, "seed"_a, "samples"_a,
             nb::sig("def draw_cut_mixes(alpha: float, size: tuple[int, int], seed: int, samples: "
                     "int) -> list[tuple[tuple[int, int, int, int], float]]"));
  module.def("finish", &finish, "picture"_a, "options"_a,
             nb::sig("def finish(picture: typing.Any, options: dict[str, object]) -> typing.Any"));
  module.def("mix_up", &mix_pictures, "pictures"_a, "form"_a, "lam"_a,
             nb::sig("def mix_up(pictures: typing.Any, form: dict[str, object], lam: float) -> "
                     "typing.Any"));
  module.def("cut_mix", &cut_pictures, "pictures"_a, "form"_a, "region"_a,
             nb::sig("def cut_mix(pictures: typing.Any, form: dict[str, object], region: "
                     "tuple[int, int, int, int]) -> typing.Any"));
  module.def("erase", &erase_region, "pictures"_a, "form"_a, "region"_a, "value"_a.none(), "seed"_a,
             nb::sig("def erase(pictures: typing.Any, form: dict[str, object], region: tuple[int, "
                     "int, int, int], value: tuple[float, float, float] | None, seed: int) -> "
                     "typing.Any"));
}

}  // namespace stoker::python
