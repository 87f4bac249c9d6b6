// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <optional>
#include <vector>

#include "measure/random.h"

namespace stoker {

/// Step durations whose truth is known, for the tests of steady_state. What a series has beside its
/// shape is drawn for each: noise of 0 to 20 % (normal or skewed), an autocorrelation of 0 or 0.3
/// to 0.6, outliers, checkpoints.
struct GeneratedSeries {
  enum class Shape { flat, oscillating, step_down, step_up, ramp, cyclic, drift, late_step };
  enum class Truth { flat, warm_up, slow_down, none };

  Shape shape = Shape::flat;
  Truth truth = Truth::flat;
  std::optional<size_t> change;  // where the steady part begins, for warm_up and slow_down
  size_t spike_period = 0;       // 0: no checkpoints
  double noise = 0, rho = 0;     // standard deviation as a share of the level; of AR(1)
  double level = 1;              // mean of the steady part, spikes and outliers left out
  std::vector<double> steps;
};

/// Makes one series. What changes changes by no less than the stated multiple of the noise: less
/// than that is hidden from any method in series as short as these.
class SeriesGenerator {
 public:
  using Shape = GeneratedSeries::Shape;
  using Truth = GeneratedSeries::Truth;

  explicit SeriesGenerator(uint64_t seed) : random_(seed) {}

  GeneratedSeries make(Shape shape) {
    GeneratedSeries made;
    made.shape = shape;
    made.noise = random_.uniform() < 0.1 ? 0 : random_.uniform(0, 0.2);
    made.rho = random_.uniform() < 0.4 ? 0 : random_.uniform(0.3, 0.6);
    made.level = std::exp(random_.uniform(std::log(1e-3), std::log(10.0)));
    const double n = std::floor(std::exp(random_.uniform(std::log(200.0), std::log(5000.0))));
    made.steps.assign(static_cast<size_t>(n), 1.0);
    apply_shape(made, n);
    add_noise(made);
    add_spikes(made);
    for (double& step : made.steps) step *= made.level;
    return made;
  }

 private:
  void apply_shape(GeneratedSeries& made, double n) {
    switch (made.shape) {
      case Shape::flat:
        return;
      case Shape::oscillating:
        return make_cycles(made, n / random_.uniform(40, 60));
      case Shape::cyclic:
        made.truth = Truth::none;
        return make_cycles(made, std::max(80.0, n / random_.uniform(2.5, 6)));
      case Shape::step_down:
      case Shape::step_up:
        return make_step(made, n);
      case Shape::ramp:
        return make_ramp(made, n);
      case Shape::drift:
        return make_drift(made, n);
      case Shape::late_step: {
        made.truth = Truth::none;
        const double tail = std::max(25.0, n * random_.uniform(0.03, 0.12));
        return add_until(made, 0, n - tail, 1 / (1 + size(made, 0.2, 1.5, 2)) - 1);
      }
    }
  }

  /// By how much of the level the series changes.
  double size(const GeneratedSeries& made, double least, double most, double least_of_noise) {
    const double low = std::max(least, least_of_noise * made.noise);
    return random_.uniform(low, std::max(low, most));
  }

  static void add_until(GeneratedSeries& made, double from, double until, double amount) {
    for (auto i = static_cast<size_t>(from); i < static_cast<size_t>(until); ++i) {
      made.steps[i] += amount;
    }
  }

  /// Up to 60 % of the series before the change; in a third of them another level lies before.
  void make_step(GeneratedSeries& made, double n) {
    const bool down = made.shape == Shape::step_down;
    made.truth = down ? Truth::warm_up : Truth::slow_down;
    const double change = std::floor(std::max(12.0, n * random_.uniform(0.03, 0.6)));
    made.change = static_cast<size_t>(change);
    const double by = down ? size(made, 0.1, 2, 1.5) : 1 / (1 + size(made, 0.15, 1, 2)) - 1;
    add_until(made, 0, change, by);
    if (random_.uniform() < 0.33) {
      const double first = std::floor(change * random_.uniform(0.3, 0.7));
      add_until(made, 0, first, down ? size(made, 0.1, 2, 1.5) : 0.5 * by);
    }
  }

  /// Levels out after 2 to 25 % of the series, along a line or an exponential. It has levelled out
  /// where what is left is under 2 % or half of the noise.
  void make_ramp(GeneratedSeries& made, double n) {
    made.truth = Truth::warm_up;
    const double by = size(made, 0.3, 3, 4);
    const double length = std::max(20.0, n * random_.uniform(0.02, 0.25));
    const bool line = random_.uniform() < 0.5;
    const double unseen = std::max(0.02, 0.5 * made.noise);
    made.change = 0;
    for (size_t i = 0; i < made.steps.size(); ++i) {
      const double at = static_cast<double>(i) / length;
      const double excess = by * (line ? std::max(0.0, 1 - at) : std::exp(-5 * at));
      made.steps[i] += excess;
      if (excess > unseen) made.change = i + 1;
    }
  }

  void make_drift(GeneratedSeries& made, double n) {
    made.truth = Truth::none;
    const double by = size(made, 0.15, 1, 3);
    const double power = random_.uniform(0.7, 1.5);
    const bool up = random_.uniform() < 0.6;
    for (size_t i = 0; i < made.steps.size(); ++i) {
      const double part = std::pow(static_cast<double>(i) / n, power);
      made.steps[i] += by * (up ? part : 1 - part);
    }
  }

  /// Slow and fast phases, with edges or as a sine.
  void make_cycles(GeneratedSeries& made, double period) {
    const double by = size(made, 0.15, 1, 2);
    const double duty = random_.uniform(0.35, 0.65), phase = random_.uniform();
    const bool edges = random_.uniform() < 0.6;
    for (size_t i = 0; i < made.steps.size(); ++i) {
      const double turns = static_cast<double>(i) / period + phase;
      const double at = turns - std::floor(turns);
      made.steps[i] +=
          by * (edges ? (at < duty ? 1.0 : 0.0) : 0.5 + 0.5 * std::sin(2 * std::numbers::pi * at));
    }
  }

  /// AR(1), multiplied on: a slower step varies more. Half of the series are skewed: the noise is
  /// then that of a log-normal, whose mean stays 1.
  void add_noise(GeneratedSeries& made) {
    const bool skewed = random_.uniform() < 0.5;
    const double sigma = skewed ? std::sqrt(std::log1p(made.noise * made.noise)) : made.noise;
    double state = random_.normal();
    for (double& step : made.steps) {
      step *=
          skewed ? std::exp(sigma * state - sigma * sigma / 2) : std::max(0.1, 1 + sigma * state);
      state = made.rho * state + std::sqrt(1 - made.rho * made.rho) * random_.normal();
    }
  }

  /// Outliers in half of the series, checkpoints in a third.
  void add_spikes(GeneratedSeries& made) {
    const size_t n = made.steps.size();
    const double rate = random_.uniform() < 0.5 ? random_.uniform(0.001, 0.01) : 0;
    for (double& step : made.steps) {
      if (random_.uniform() < rate) step *= random_.uniform(1.5, 10);
    }
    if (random_.uniform() > 0.33) return;
    made.spike_period = 15 + random_.below(n / 8 - 14);
    const double length = random_.uniform(3, 20);
    for (size_t i = random_.below(made.spike_period); i < n; i += made.spike_period) {
      made.steps[i] += length * random_.uniform(0.9, 1.1);
    }
  }

  Random random_;
};

}  // namespace stoker
