// SPDX-License-Identifier: Apache-2.0

// A training loop in C++ that measures itself; tests/cli/test_meter_program.py runs it.
//
//   meter_program STEPS WAIT_MS STEP_MS [watch]

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "measure/meter.h"

namespace {

void rest(double milliseconds) { ::usleep(static_cast<useconds_t>(milliseconds * 1e3)); }

}  // namespace

int main(int count, char** words) {
  if (count < 4) return 2;
  const auto steps = static_cast<size_t>(std::atoi(words[1]));
  const double wait_ms = std::atof(words[2]);
  const double step_ms = std::atof(words[3]);
  stoker::Meter meter;
  std::printf("%s\n", meter.run().c_str());
  std::fflush(stdout);
  if (count > 4 && std::string_view(words[4]) == "watch") {
    const std::vector<std::vector<int>> batches(steps, std::vector<int>(32));
    for ([[maybe_unused]] const auto& batch : meter.watch(batches, "training")) rest(step_ms);
    return 0;
  }
  for (size_t i = 0; i < steps; ++i) {
    rest(wait_ms);
    const auto step = meter.step(32);
    rest(step_ms);
  }
  return 0;
}
