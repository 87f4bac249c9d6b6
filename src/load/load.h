// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "load/loader.h"

namespace stoker {

struct LoadOptions {
  uint32_t crop = 224;  // side of the pictures
  uint64_t batch_size = 256;
  unsigned threads = 0;  // 0: one per usable core
  uint64_t epochs = 2;
  bool shuffle = true;
  uint64_t seed = 0;
  bool skip_bad = false;
  Progress* progress = nullptr;
};

struct EpochRate {
  uint64_t samples = 0;
  uint64_t bytes = 0;  // read
  double seconds = 0;
  double samples_per_s() const { return static_cast<double>(samples) / seconds; }
};

struct LoadResult {
  std::vector<EpochRate> epochs;
  LoaderStats last;  // of the last epoch
  std::vector<Fault> bad;
};

/// Runs the Loader without a model: RandomResizedCrop and flip, as training would.
LoadResult load(const std::string& path, const LoadOptions& options);

}  // namespace stoker
