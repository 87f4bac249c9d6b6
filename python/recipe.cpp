// SPDX-License-Identifier: Apache-2.0
#include "recipe.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <array>
#include <string>
#include <utility>

#include "base/error.h"
#include "bind_augment.h"

namespace nb = nanobind;

namespace stoker::python {
namespace {

using Kind = GeometryStep::Kind;

constexpr std::array<std::pair<const char*, Kind>, 6> kKinds = {{
    {"random_resized_crop", Kind::random_resized_crop},
    {"resize", Kind::resize},
    {"resize_shorter", Kind::resize_shorter},
    {"center_crop", Kind::center_crop},
    {"random_crop", Kind::random_crop},
    {"horizontal_flip", Kind::horizontal_flip},
}};
constexpr std::array<std::pair<const char*, PaddingMode>, 4> kModes = {{
    {"constant", PaddingMode::constant},
    {"edge", PaddingMode::edge},
    {"reflect", PaddingMode::reflect},
    {"symmetric", PaddingMode::symmetric},
}};

template <typename T, size_t kCount>
T find(const std::array<std::pair<const char*, T>, kCount>& names, const std::string& given) {
  for (const auto& [name, value] : names) {
    if (name == given) return value;
  }
  throw Error(ErrorKind::usage, "transforms: '" + given + "' is not known");
}

template <typename T>
void take(const nb::dict& given, const char* name, T& to) {
  if (given.contains(name)) to = nb::cast<T>(given[name]);
}

GeometryStep geometry_step_of(const nb::dict& given) {
  GeometryStep step;
  step.kind = find(kKinds, nb::cast<std::string>(given["kind"]));
  std::pair<uint32_t, uint32_t> size{1, 1};
  take(given, "size", size);
  step.size = {size.first, size.second};
  std::string resample = "bilinear";
  take(given, "resample", resample);
  const std::optional<Resample> filter = find_resample(resample);
  if (!filter) throw Error(ErrorKind::usage, "interpolation '" + resample + "' is not known");
  step.resample = *filter;
  std::pair<double, double> area{step.smallest_area, step.largest_area};
  take(given, "scale", area);
  std::tie(step.smallest_area, step.largest_area) = area;
  std::pair<double, double> ratio{step.smallest_ratio, step.largest_ratio};
  take(given, "ratio", ratio);
  std::tie(step.smallest_ratio, step.largest_ratio) = ratio;
  std::array<uint32_t, 4> padding{};
  take(given, "padding", padding);
  step.padding = {padding[0], padding[1], padding[2], padding[3]};
  take(given, "pad_if_needed", step.pad_if_needed);
  take(given, "fill", step.fill);
  std::string mode = "constant";
  take(given, "padding_mode", mode);
  step.mode = find(kModes, mode);
  take(given, "p", step.probability);
  return step;
}

std::vector<BatchMix> mixes_of(const nb::list& given) {
  std::vector<BatchMix> mixes;
  for (const nb::handle each : given) {
    const auto mix = nb::cast<nb::dict>(each);
    const bool cuts = nb::cast<std::string>(mix["step"]) == "CutMix";
    mixes.push_back(
        {cuts ? BatchMix::Kind::cut_mix : BatchMix::Kind::mix_up, nb::cast<double>(mix["alpha"])});
  }
  return mixes;
}

}  // namespace

PictureRecipe picture_recipe_of(const nb::dict& given) {
  std::vector<GeometryStep> steps;
  for (const nb::handle step : nb::cast<nb::list>(given["geometry"])) {
    steps.push_back(geometry_step_of(nb::cast<nb::dict>(step)));
  }
  PictureRecipe recipe;
  recipe.geometry = Geometry(std::move(steps));
  recipe.augmentation = steps_of(nb::cast<nb::list>(given["augmentation"]));
  recipe.finisher = Finisher(finish_options_of(nb::cast<nb::dict>(given["finish"])));
  for (const nb::handle erasing : nb::cast<nb::list>(given["erasing"])) {
    recipe.erasing.push_back(erasing_of(nb::cast<nb::dict>(erasing)));
  }
  for (const nb::handle choices : nb::cast<nb::list>(given["mixing"])) {
    recipe.mixing.push_back(mixes_of(nb::cast<nb::list>(choices)));
  }
  recipe.classes = nb::cast<uint32_t>(given["classes"]);
  return recipe;
}

}  // namespace stoker::python
