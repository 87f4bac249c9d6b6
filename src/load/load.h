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
  uint32_t crop = 224;             // side of the pictures
  std::string image{kImageField};  // the field that is decoded
  bool raw = false;                // all fields as they are stored, nothing is decoded
  bool cold = false;               // every epoch reads from the disk
  uint64_t batch_size = 256;
  unsigned threads = 0;  // 0: as many of the usable cores as are needed
  uint64_t epochs = 2;
  OrderOptions::Kind order = OrderOptions::Kind::shuffled;
  uint64_t seed = 0;
  bool skip_bad = false;
  Progress* progress = nullptr;
};

struct EpochRate {
  uint64_t samples = 0;
  uint64_t bytes = 0;  // read
  double seconds = 0;
  double samples_per_s() const { return static_cast<double>(samples) / seconds; }
  double bytes_per_s() const { return static_cast<double>(bytes) / seconds; }
};

struct LoadResult {
  std::string path, format;
  std::vector<EpochRate> epochs;
  LoaderStats last;  // of the last epoch
  bool in_blocks = false;
  double mixing = 1;  // see Order::mixing()
  /// Share of the dataset that stayed in memory although it should have been forgotten.
  double kept_in_memory = 0;
  std::vector<Fault> bad;

  /// What to do about what limits.
  std::string next_step(unsigned cores) const;
};

/// Runs the Loader without a model: RandomResizedCrop and flip, as training would.
LoadResult load(const std::string& path, const LoadOptions& options);

}  // namespace stoker
