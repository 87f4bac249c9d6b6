// SPDX-License-Identifier: Apache-2.0
#include "load/geometry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace stoker {
namespace {

using Kind = GeometryStep::Kind;

/// As torchvision's: ten tries, then as much of the middle as the ratios allow.
Region random_region(const GeometryStep& step, Size photo, SampleRandom& random) {
  constexpr int kTries = 10;
  const double low = std::log(step.smallest_ratio);
  const double high = std::log(step.largest_ratio);
  for (int i = 0; i < kTries; ++i) {
    const double area =
        static_cast<double>(photo.pixels()) * random.uniform(step.smallest_area, step.largest_area);
    const double ratio = std::exp(random.uniform(low, high));
    const auto width = static_cast<uint32_t>(std::lround(std::sqrt(area * ratio)));
    const auto height = static_cast<uint32_t>(std::lround(std::sqrt(area / ratio)));
    if (width == 0 || height == 0 || width > photo.width || height > photo.height) continue;
    const uint32_t top = random.below(photo.height - height + 1);
    const uint32_t left = random.below(photo.width - width + 1);
    return {top, left, height, width};
  }
  uint32_t width = photo.width;
  uint32_t height = photo.height;
  const double ratio = static_cast<double>(width) / height;
  if (ratio < step.smallest_ratio) {
    height = static_cast<uint32_t>(std::lround(width / step.smallest_ratio));
  } else if (ratio > step.largest_ratio) {
    width = static_cast<uint32_t>(std::lround(height * step.largest_ratio));
  }
  height = std::clamp(height, 1U, photo.height);
  width = std::clamp(width, 1U, photo.width);
  return {(photo.height - height) / 2, (photo.width - width) / 2, height, width};
}

/// Size of a photo whose shorter side is to be step.size.height; rounded as torchvision does.
Size shorter_resized(const GeometryStep& step, Size photo) {
  const uint32_t shorter = std::min(photo.width, photo.height);
  const uint32_t longer = std::max(photo.width, photo.height);
  uint32_t side = step.size.height;
  auto other = static_cast<uint32_t>(static_cast<double>(side) * longer / shorter);
  const uint32_t most = step.size.width;
  if (most != 0 && other > most) {
    side = std::max(1U, static_cast<uint32_t>(static_cast<double>(most) * side / other));
    other = most;
  }
  return photo.width <= photo.height ? Size{other, side} : Size{side, other};
}

/// Where a crop of length `wanted` begins in the middle of `length`; Python's round().
int64_t middle(int64_t length, int64_t wanted) {
  // Padding first makes it even or one more; what is left over goes behind.
  if (wanted > length) return -((wanted - length) / 2);
  return static_cast<int64_t>(std::nearbyint(static_cast<double>(length - wanted) / 2));
}

/// A photo on its way through the steps: a window of what it was resized to.
struct State {
  explicit State(Size photo) : crop{0, 0, photo.height, photo.width}, bounds(crop), size(photo) {}

  Region crop;             // of the photo
  std::optional<Size> to;  // to which the crop is resized
  Resample resample = Resample::bilinear;
  Region bounds;              // what of it is the picture; around that lies padding
  int64_t top = 0, left = 0;  // of the window
  Size size;                  // of the window
  bool mirrored = false;
  PaddingMode mode = PaddingMode::constant;
  std::array<uint8_t, 3> fill = {0, 0, 0};

  bool inside() const {
    return top >= bounds.top && left >= bounds.left &&
           top + size.height <= int64_t{bounds.top} + bounds.height &&
           left + size.width <= int64_t{bounds.left} + bounds.width;
  }
  /// The part of the window that is no padding; of no height or width where all of it is.
  Region visible() const {
    const int64_t first_row = std::max<int64_t>(top, bounds.top);
    const int64_t first_column = std::max<int64_t>(left, bounds.left);
    const int64_t end_row = std::min<int64_t>(top + size.height, bounds.top + bounds.height);
    const int64_t end_column = std::min<int64_t>(left + size.width, bounds.left + bounds.width);
    return {static_cast<uint32_t>(first_row), static_cast<uint32_t>(first_column),
            static_cast<uint32_t>(std::max<int64_t>(0, end_row - first_row)),
            static_cast<uint32_t>(std::max<int64_t>(0, end_column - first_column))};
  }
  /// Takes a part of the window, as it looks now; what reaches beyond it is filled as `step` says.
  void take(int64_t from_top, int64_t from_left, Size part, const GeometryStep& step) {
    const bool pads = from_top < 0 || from_left < 0 || from_top + part.height > size.height ||
                      from_left + part.width > size.width;
    if (pads) {
      const bool constant = mode == PaddingMode::constant && step.mode == PaddingMode::constant;
      if (!inside() && !(constant && fill == step.fill)) {
        throw Error(ErrorKind::unsupported,
                    "two steps put different padding around it: make it one, or use a Python "
                    "function");
      }
      mode = step.mode;
      fill = step.fill;
    }
    bounds = visible();
    top += from_top;
    left += mirrored ? int64_t{size.width} - from_left - part.width : from_left;
    size = part;
  }
  void resize(Size size_now, Resample filter) {
    if (!inside()) {
      throw Error(ErrorKind::unsupported,
                  "the photo is smaller than the crop before it is resized: resize first");
    }
    crop = visible();
    to = size_now;
    resample = filter;
    top = left = 0;
    size = size_now;
    bounds = {0, 0, size.height, size.width};
  }
};

void crop_randomly(const GeometryStep& step, State& state, SampleRandom& random) {
  int64_t top = -int64_t{step.padding.top};
  int64_t left = -int64_t{step.padding.left};
  int64_t height = state.size.height + int64_t{step.padding.top} + step.padding.bottom;
  int64_t width = state.size.width + int64_t{step.padding.left} + step.padding.right;
  const auto enlarge = [&](int64_t& begin, int64_t& length, int64_t wanted) {
    if (!step.pad_if_needed || length >= wanted) return;
    begin -= wanted - length;
    length += 2 * (wanted - length);
  };
  enlarge(top, height, step.size.height);
  enlarge(left, width, step.size.width);
  if (height < step.size.height || width < step.size.width) {
    throw Error(
        ErrorKind::unsupported,
        fmt::format("height {}, width {} is smaller than the RandomCrop of {} x {}: "
                    "pad_if_needed=True helps, or a Resize before it",
                    state.size.height, state.size.width, step.size.height, step.size.width));
  }
  top += random.below(static_cast<uint32_t>(height - step.size.height + 1));
  left += random.below(static_cast<uint32_t>(width - step.size.width + 1));
  state.take(top, left, step.size, step);
}

void apply(const GeometryStep& step, State& state, SampleRandom& random) {
  switch (step.kind) {
    case Kind::random_resized_crop: {
      const Region region = random_region(step, state.size, random);
      state.take(region.top, region.left, region.size(), step);
      return state.resize(step.size, step.resample);
    }
    case Kind::resize:
      return state.resize(step.size, step.resample);
    case Kind::resize_shorter:
      return state.resize(shorter_resized(step, state.size), step.resample);
    case Kind::center_crop:
      return state.take(middle(state.size.height, step.size.height),
                        middle(state.size.width, step.size.width), step.size, step);
    case Kind::random_crop:
      return crop_randomly(step, state, random);
    case Kind::horizontal_flip:
      state.mirrored ^= random.uniform() < step.probability;
      return;
  }
}

bool resizes(Kind kind) {
  return kind == Kind::random_resized_crop || kind == Kind::resize || kind == Kind::resize_shorter;
}

/// Pixel of a row or column of `length` that stands at `at`, which may lie outside.
int64_t reflected(int64_t at, int64_t length, PaddingMode mode) {
  if (mode == PaddingMode::edge || length == 1) return std::clamp<int64_t>(at, 0, length - 1);
  const int64_t period = mode == PaddingMode::reflect ? 2 * (length - 1) : 2 * length;
  at %= period;
  if (at < 0) at += period;
  if (at < length) return at;
  return mode == PaddingMode::reflect ? period - at : period - 1 - at;
}

}  // namespace

Geometry::Geometry(std::vector<GeometryStep> steps) : steps_(std::move(steps)) {
  int resized = 0;
  for (const GeometryStep& step : steps_) {
    if (resizes(step.kind) && ++resized > 1) {
      throw Error(ErrorKind::usage,
                  "transforms: a second step that resizes; make it one, or use a Python function");
    }
    if (step.kind == Kind::horizontal_flip) continue;
    if (step.size.height == 0) {
      throw Error(ErrorKind::usage, "transforms: a size of 0 makes no picture");
    }
    size_ = step.kind == Kind::resize_shorter ? Size{} : step.size;
  }
  if (size_ == Size{}) {
    throw Error(ErrorKind::usage,
                "transforms: Resize(n) keeps the shape, so pictures would differ in size: add "
                "CenterCrop(n) or RandomCrop(n), or give Resize((height, width))");
  }
}

PicturePlan Geometry::plan(Size photo, SampleRandom& random) const {
  State state(photo);
  for (const GeometryStep& step : steps_) apply(step, state, random);
  const Region& bounds = state.bounds;
  PicturePlan plan;
  plan.size = state.size;
  plan.bounds = bounds;
  plan.top = state.top - bounds.top;
  plan.left = state.left - bounds.left;
  plan.mode = state.mode;
  plan.fill = state.fill;
  plan.decode.crop = state.crop;
  plan.decode.size = state.to;
  plan.decode.resample = state.resample;
  plan.decode.flip = state.mirrored;
  const Region visible = state.visible();
  if (visible.size().pixels() == 0) return plan;  // nothing but padding
  plan.placed = {static_cast<uint32_t>(visible.top - state.top),
                 static_cast<uint32_t>(visible.left - state.left), visible.height, visible.width};
  plan.decode.window = visible;
  return plan;
}

namespace {

/// Around what is decoded lies one colour.
void decode_on_colour(ImageDecoder& decoder, const PicturePlan& plan, uint8_t* out) {
  const size_t stride = size_t{plan.size.width} * 3;
  for (size_t i = 0; i < plan.size.pixels(); ++i) std::memcpy(out + 3 * i, plan.fill.data(), 3);
  if (plan.placed.size().pixels() == 0) return;
  const Region& at = plan.placed;
  const uint32_t left = plan.decode.flip ? plan.size.width - at.left - at.width : at.left;
  decoder.decode(plan.decode, out + at.top * stride + size_t{left} * 3, stride);
}

/// Around the photo lies the photo again.
void decode_on_itself(ImageDecoder& decoder, const PicturePlan& plan, std::vector<uint8_t>& scratch,
                      uint8_t* out) {
  DecodeOptions all = plan.decode;
  all.window = plan.bounds;
  all.flip = false;
  const Size whole = plan.bounds.size();
  scratch.resize(whole.pixels() * 3);
  decoder.decode(all, scratch.data(), size_t{whole.width} * 3);
  for (uint32_t y = 0; y < plan.size.height; ++y) {
    const int64_t row = reflected(plan.top + y, whole.height, plan.mode);
    for (uint32_t x = 0; x < plan.size.width; ++x) {
      const int64_t column = reflected(plan.left + x, whole.width, plan.mode);
      const uint32_t to = plan.decode.flip ? plan.size.width - 1 - x : x;
      std::memcpy(out + (size_t{y} * plan.size.width + to) * 3,
                  scratch.data() + (row * whole.width + column) * 3, 3);
    }
  }
}

}  // namespace

void decode_picture(ImageDecoder& decoder, const PicturePlan& plan, std::vector<uint8_t>& scratch,
                    uint8_t* out) {
  if (!plan.padded()) return decoder.decode(plan.decode, out, size_t{plan.size.width} * 3);
  if (plan.mode == PaddingMode::constant) return decode_on_colour(decoder, plan, out);
  decode_on_itself(decoder, plan, scratch, out);
}

}  // namespace stoker
