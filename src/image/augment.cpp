// SPDX-License-Identifier: Apache-2.0
#include "image/augment.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/error.h"
#include "image/colour.h"

namespace stoker {
namespace {

constexpr double kAny = 1e9;  // for which every calculation stays finite

struct Row {
  Operation operation;
  std::string_view name;
  double least = -kAny, most = kAny;  // of the amount
};

constexpr std::array kOperations = {
    Row{Operation::identity, "identity"},
    Row{Operation::brightness, "brightness"},
    Row{Operation::contrast, "contrast"},
    Row{Operation::saturation, "saturation"},
    Row{Operation::sharpness, "sharpness"},
    Row{Operation::hue, "hue", -0.5, 0.5},
    Row{Operation::posterize, "posterize", 1, 8},
    Row{Operation::solarize, "solarize"},
    Row{Operation::autocontrast, "autocontrast"},
    Row{Operation::equalize, "equalize"},
    Row{Operation::invert, "invert"},
    Row{Operation::grayscale, "grayscale"},
    Row{Operation::horizontal_flip, "horizontal_flip"},
    Row{Operation::vertical_flip, "vertical_flip"},
    Row{Operation::shear_x, "shear_x", -1, 1},
    Row{Operation::shear_y, "shear_y", -1, 1},
    Row{Operation::translate_x, "translate_x"},
    Row{Operation::translate_y, "translate_y"},
    Row{Operation::rotate, "rotate"},
};

void check(const Change& change) {
  const Row& row = kOperations.at(static_cast<size_t>(change.operation));
  if (change.amount >= row.least && change.amount <= row.most) return;
  throw Error(ErrorKind::usage, fmt::format("{} {}: should be between {} and {}", row.name,
                                            change.amount, row.least, row.most));
}

}  // namespace

std::optional<Operation> find_operation(std::string_view name) {
  for (const Row& row : kOperations) {
    if (row.name == name) return row.operation;
  }
  return std::nullopt;
}

std::string_view name_of(Operation operation) {
  return kOperations.at(static_cast<size_t>(operation)).name;
}

void Augmenter::apply(const Change& change, const Picture& picture) {
  check(change);
  if (picture.pixels() == 0) return;
  const double amount = change.amount;
  const WarpOptions& warp = change.warp;
  switch (change.operation) {
    case Operation::identity:
      return;
    case Operation::brightness:
      return adjust_brightness(picture, amount);
    case Operation::contrast:
      return adjust_contrast(picture, amount);
    case Operation::saturation:
      return adjust_saturation(picture, amount);
    case Operation::sharpness:
      return adjust_sharpness(picture, amount);
    case Operation::hue:
      return adjust_hue(picture, amount);
    case Operation::posterize:
      return posterize(picture, static_cast<unsigned>(amount));
    case Operation::solarize:
      return solarize(picture, amount);
    case Operation::autocontrast:
      return autocontrast(picture);
    case Operation::equalize:
      return equalize(picture);
    case Operation::invert:
      return invert(picture);
    case Operation::grayscale:
      return make_grayscale(picture);
    case Operation::horizontal_flip:
      return flip_horizontally(picture);
    case Operation::vertical_flip:
      return flip_vertically(picture);
    case Operation::shear_x:
      return warper_.shear_x(picture, amount, warp);
    case Operation::shear_y:
      return warper_.shear_y(picture, amount, warp);
    case Operation::translate_x:
      return warper_.translate(picture, static_cast<int64_t>(amount), 0, warp);
    case Operation::translate_y:
      return warper_.translate(picture, 0, static_cast<int64_t>(amount), warp);
    case Operation::rotate:
      return warper_.rotate(picture, amount, warp);
  }
}

}  // namespace stoker
