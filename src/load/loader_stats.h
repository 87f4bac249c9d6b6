// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/scan.h"
#include "image/decode_path.h"

namespace stoker {

/// Photos by the way in which they were decoded: DecodePath.
using DecodeCounts = std::array<uint64_t, kDecodePaths>;

/// What the threads of a stage did, in seconds over all of them.
struct StageTime {
  unsigned threads = 0;  // at the moment
  double busy = 0;
  double computing = 0;  // of busy: on a core, or in want of one, not waiting for a disk
  double waiting_for_input = 0;
  double waiting_for_room = 0;
};

struct LoaderStats {
  StageTime fetch, decode;
  double seconds = 0;  // since the epoch began
  double waited = 0;   // of whoever takes the batches
  /// The same behind the first batch, which has to be waited for.
  double seconds_behind_first = 0, waited_behind_first = 0;
  uint64_t samples_behind_first = 0;
  uint64_t samples = 0, bytes = 0;  // fetched
  uint64_t cache_hits = 0, cache_bytes = 0;
  unsigned ahead = 0;  // batches that may be made before they are asked for
  bool pictures = false;
  DecodeCounts decoders{};
  /// Samples that were skipped or replaced, and before them what is missing from the datasets.
  std::vector<Fault> bad;
  std::vector<Fault> damaged;  // photos that were decoded all the same: PictureRecipe::like_pillow
};

/// What holds up the rest: "step" (whoever takes the batches), "decode" or "fetch".
std::string_view limit_of(const LoaderStats& stats);

/// The same in a sentence, with what would help. `cores`: that this process may use.
std::string verdict_of(const LoaderStats& stats, unsigned cores);

}  // namespace stoker
