// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/progress.h"
#include "results/machine.h"

namespace stoker {

struct ProbeOptions {
  /// Directories; where there are none, the well-known ones that exist, and the current one.
  std::vector<std::string> places;
  uint64_t bytes = 1ULL << 30;  // written to each place, at most
  double seconds = 8;           // spent in each place, about
  unsigned threads = 16;        // that read and write at once, at most
  std::string photos;           // a folder whose photos are decoded; empty: generated ones
  // What is measured.
  bool storage = true, files = true, copies = true, memory = true, decode = true, gpu = true;
};

/// What places take all together by default, however many there are, and how much longer it may
/// become where storage is slow: no trial begins behind that.
inline constexpr double kSecondsOfAllPlaces = 32, kGraceSeconds = 16;

/// With less, nothing that is written to a place tells anything.
inline constexpr uint64_t kLeastProbeBytes = 8 << 20;

/// Measures this machine. A place that cannot be measured, or not all of it, says so in its
/// `problem`; leaves no file behind, not even where it is interrupted. What a killed probe left
/// is removed.
Machine probe(const ProbeOptions& options, Progress& progress);

/// Writes one profile per place to `directory`, named HOST--PLACE.json, over older ones. Returns
/// their paths.
std::vector<std::string> write_profiles(const Machine& machine, const std::string& directory);
/// Where profiles lie unless somebody says otherwise: in the user's cache.
std::string profile_directory();

}  // namespace stoker
