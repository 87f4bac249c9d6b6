// SPDX-License-Identifier: Apache-2.0
#include "load/augmentation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace stoker {
namespace {

/// torch.linspace(low, high, count)[at], in float32.
double linspace(double low, double high, uint32_t count, uint32_t at) {
  const auto first = static_cast<float>(low);
  const auto last = static_cast<float>(high);
  const float step = (last - first) / static_cast<float>(count - 1);
  if (at < count / 2) return first + step * static_cast<float>(at);
  return last - step * static_cast<float>(count - 1 - at);
}

/// (8 - torch.arange(count) / ((count - 1) / fewer))[at].round(): at the end 8 - fewer.
double posterize_bits(int fewer, uint32_t count, uint32_t at) {
  const auto step = static_cast<float>(static_cast<double>(count - 1) / fewer);
  return std::nearbyint(8.0F - static_cast<float>(at) / step);
}

/// How an operation's magnitude goes from none to the most.
struct Magnitudes {
  enum class Kind : uint8_t {
    none,
    factor,
    slope,
    pixels,
    width_part,
    height_part,
    degrees,
    bits,
    threshold
  };
  Operation operation;
  Kind kind;
  double most;
  bool is_signed;
};

using Kind = Magnitudes::Kind;
using Space = std::array<Magnitudes, 14>;

// In torchvision's order.
constexpr Space kRandSpace = {{
    {Operation::identity, Kind::none, 0, false},
    {Operation::shear_x, Kind::slope, 0.3, true},
    {Operation::shear_y, Kind::slope, 0.3, true},
    {Operation::translate_x, Kind::width_part, 150.0 / 331.0, true},
    {Operation::translate_y, Kind::height_part, 150.0 / 331.0, true},
    {Operation::rotate, Kind::degrees, 30, true},
    {Operation::brightness, Kind::factor, 0.9, true},
    {Operation::saturation, Kind::factor, 0.9, true},
    {Operation::contrast, Kind::factor, 0.9, true},
    {Operation::sharpness, Kind::factor, 0.9, true},
    {Operation::posterize, Kind::bits, 4, false},
    {Operation::solarize, Kind::threshold, 255, false},
    {Operation::autocontrast, Kind::none, 0, false},
    {Operation::equalize, Kind::none, 0, false},
}};

constexpr Space kWideSpace = {{
    {Operation::identity, Kind::none, 0, false},
    {Operation::shear_x, Kind::slope, 0.99, true},
    {Operation::shear_y, Kind::slope, 0.99, true},
    {Operation::translate_x, Kind::pixels, 32, true},
    {Operation::translate_y, Kind::pixels, 32, true},
    {Operation::rotate, Kind::degrees, 135, true},
    {Operation::brightness, Kind::factor, 0.99, true},
    {Operation::saturation, Kind::factor, 0.99, true},
    {Operation::contrast, Kind::factor, 0.99, true},
    {Operation::sharpness, Kind::factor, 0.99, true},
    {Operation::posterize, Kind::bits, 6, false},
    {Operation::solarize, Kind::threshold, 255, false},
    {Operation::autocontrast, Kind::none, 0, false},
    {Operation::equalize, Kind::none, 0, false},
}};

double amount_of(const Magnitudes& magnitudes, Size size, uint32_t bins, uint32_t bin,
                 bool negative) {
  const double sign = negative && magnitudes.is_signed ? -1 : 1;
  const auto up_to = [&](double most) { return sign * linspace(0, most, bins, bin); };
  switch (magnitudes.kind) {
    case Kind::none:
      return 0;
    case Kind::factor:
      return 1 + up_to(magnitudes.most);
    case Kind::slope:
    case Kind::pixels:
    case Kind::degrees:
      return up_to(magnitudes.most);
    case Kind::width_part:
      return up_to(magnitudes.most * size.width);
    case Kind::height_part:
      return up_to(magnitudes.most * size.height);
    case Kind::bits:
      return posterize_bits(static_cast<int>(magnitudes.most), bins, bin);
    case Kind::threshold:
      return magnitudes.most * linspace(1, 0, bins, bin);
  }
  return 0;
}

/// Draws what one step does.
class Drawing {
 public:
  Drawing(Size size, SampleRandom& random, std::vector<Change>& changes)
      : size_(size), random_(random), changes_(changes) {}

  void operator()(const ColorJitter& jitter) {
    std::array<int, 4> order = {0, 1, 2, 3};
    for (uint32_t left = 4; left > 1; --left)
      std::swap(order[left - 1], order[random_.below(left)]);
    const std::array ranges = {jitter.brightness, jitter.contrast, jitter.saturation, jitter.hue};
    constexpr std::array kOperations = {Operation::brightness, Operation::contrast,
                                        Operation::saturation, Operation::hue};
    std::array<double, 4> factors{};
    for (size_t i = 0; i < 4; ++i) {  // also those that have no range: all steps draw alike
      const NumberRange range = ranges[i].value_or(NumberRange{});
      factors[i] = static_cast<float>(random_.uniform(range.low, range.high));
    }
    for (const int i : order) {
      if (ranges[i]) changes_.push_back({kOperations[i], factors[i], {}});
    }
  }

  void operator()(const RandAugment& step) {
    for (uint32_t i = 0; i < step.num_ops; ++i) {
      const Magnitudes& chosen = kRandSpace[random_.below(kRandSpace.size())];
      add(chosen, step.num_magnitude_bins, step.magnitude, step.warp);
    }
  }

  void operator()(const TrivialAugmentWide& step) {
    const Magnitudes& chosen = kWideSpace[random_.below(kWideSpace.size())];
    add(chosen, step.num_magnitude_bins, random_.below(step.num_magnitude_bins), step.warp);
  }

  void operator()(const RandomHorizontalFlip& step) { maybe(step.p, Operation::horizontal_flip); }
  void operator()(const RandomVerticalFlip& step) { maybe(step.p, Operation::vertical_flip); }
  void operator()(const RandomGrayscale& step) { maybe(step.p, Operation::grayscale); }

 private:
  void add(const Magnitudes& chosen, uint32_t bins, uint32_t bin, const WarpOptions& warp) {
    const bool negative = random_.below(2) == 0;
    if (chosen.operation == Operation::identity) return;
    changes_.push_back({chosen.operation, amount_of(chosen, size_, bins, bin, negative), warp});
  }

  void maybe(double p, Operation operation) {
    if (random_.uniform() < p) changes_.push_back({operation, 0, {}});
  }

  Size size_;
  SampleRandom& random_;
  std::vector<Change>& changes_;
};

/// The logarithm of a number of the distribution Gamma(alpha, 1), which itself may be too small to
/// be stored. Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
double draw_log_gamma(double alpha, SampleRandom& random) {
  const double d = alpha + 1 - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  NormalRandom normal(random);
  for (;;) {
    const double x = normal();
    const double u = 1 - random.uniform();
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double log_v = 3 * std::log(root);
    if (std::log(u) >= 0.5 * x * x + d * (1 - std::exp(log_v) + log_v)) continue;
    // Of alpha + 1; the power of an even number makes it one of alpha.
    return std::log(d) + log_v + std::log(1 - random.uniform()) / alpha;
  }
}

}  // namespace

std::vector<Change> draw_changes(const std::vector<AugmentationStep>& steps, Size size,
                                 SampleRandom& random) {
  std::vector<Change> changes;
  for (const AugmentationStep& step : steps) std::visit(Drawing(size, random, changes), step);
  return changes;
}

void augment(const std::vector<AugmentationStep>& steps, SampleRandom& random, Augmenter& augmenter,
             const Picture& picture) {
  for (const Change& change : draw_changes(steps, picture.size, random)) {
    augmenter.apply(change, picture);
  }
}

std::optional<Region> draw_erasing(const RandomErasing& erasing, Size size, SampleRandom& random) {
  constexpr int kTries = 10;
  if (random.uniform() >= erasing.p) return std::nullopt;
  for (int i = 0; i < kTries; ++i) {
    const double area =
        static_cast<double>(size.pixels()) * random.uniform(erasing.scale.low, erasing.scale.high);
    const double ratio =
        std::exp(random.uniform(std::log(erasing.ratio.low), std::log(erasing.ratio.high)));
    const auto height = static_cast<uint64_t>(std::nearbyint(std::sqrt(area * ratio)));
    const auto width = static_cast<uint64_t>(std::nearbyint(std::sqrt(area / ratio)));
    if (height >= size.height || width >= size.width) continue;
    const auto rows = static_cast<uint32_t>(height);
    const auto columns = static_cast<uint32_t>(width);
    const uint32_t top = random.below(size.height - rows + 1);
    const uint32_t left = random.below(size.width - columns + 1);
    return Region{top, left, rows, columns};
  }
  return std::nullopt;
}

double NormalRandom::operator()() {
  if (second_) {
    const double value = *second_;
    second_.reset();
    return value;
  }
  const double radius = std::sqrt(-2 * std::log(1 - random_.uniform()));
  const double angle = 2 * std::numbers::pi * random_.uniform();
  second_ = radius * std::sin(angle);
  return radius * std::cos(angle);
}

double draw_beta(double alpha, SampleRandom& random) {
  const double first = draw_log_gamma(alpha, random);
  const double second = draw_log_gamma(alpha, random);
  return 1 / (1 + std::exp(second - first));
}

CutMixDraw draw_cut_mix(double alpha, Size size, SampleRandom& random) {
  const double half = 0.5 * std::sqrt(1 - draw_beta(alpha, random));
  // From around one place as far as there is room.
  const auto span = [&](uint32_t length) {
    const auto middle = static_cast<int64_t>(random.below(length));
    const auto reach = static_cast<int64_t>(half * length);
    const auto begin = static_cast<uint32_t>(std::max<int64_t>(middle - reach, 0));
    const auto end = static_cast<uint32_t>(std::min<int64_t>(middle + reach, length));
    return std::pair(begin, end - begin);
  };
  const auto [left, width] = span(size.width);
  const auto [top, height] = span(size.height);
  const double part =
      static_cast<double>(uint64_t{width} * height) / static_cast<double>(size.pixels());
  return {{top, left, height, width}, 1 - part};
}

}  // namespace stoker
