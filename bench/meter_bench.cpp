// SPDX-License-Identifier: Apache-2.0

// What recording a step costs in C++: many empty steps, and as many batches watched, both with
// what is written once a second. Prints the median of some rounds, in nanoseconds.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "measure/meter.h"
#include "os/scratch_directory.h"

namespace {

constexpr int kRounds = 11;
constexpr int kSteps = 200'000;

template <typename Body>
double median_ns(const Body& body) {
  std::vector<double> rounds;
  for (int i = 0; i < kRounds; ++i) {
    const int64_t begin = stoker::monotonic_ns();
    body();
    rounds.push_back(static_cast<double>(stoker::monotonic_ns() - begin) / kSteps);
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds[kRounds / 2];
}

}  // namespace

int main() {
  const stoker::ScratchDirectory directory;
  stoker::Meter meter({.run = directory.path() + "/run"});
  const double steps = median_ns([&] {
    for (int i = 0; i < kSteps; ++i) {
      const auto step = meter.step(32);
    }
  });
  const std::vector<int> batches(kSteps);
  const double watched = median_ns([&] {
    for ([[maybe_unused]] const int batch : meter.watch(batches, "batches")) {
    }
  });
  const double clock = median_ns([&] {
    int64_t sum = 0;
    for (int i = 0; i < kSteps; ++i) sum += stoker::monotonic_ns();
    if (sum == 0) fmt::print("\n");
  });
  fmt::print("a step: {:.0f} ns, a watched batch: {:.0f} ns, looking at the clock: {:.0f} ns\n",
             steps, watched, clock);
}
