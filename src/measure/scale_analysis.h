// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/scale.h"

namespace stoker {

struct FittedModel {
  ScalingFit fit;
  ScalingIntervals intervals;
  bool best = false;  // of those that were fitted; advice and predictions follow it
};

/// What is to be expected at a width that was perhaps not measured.
struct ScalePrediction {
  uint64_t n = 1;
  std::optional<Interval> rate;  // of the best model; from what it and those as good make of it
  std::string refused;           // why there is none
};

struct ScaleAnalysis {
  std::vector<FittedModel> fits;  // those that have enough widths
  std::string advice;
  std::string doubt;  // why the advice may be wrong; empty where nothing speaks against it
  std::optional<uint64_t> worthwhile;    // up to which each brings half of what the first does
  std::optional<uint64_t> hurts_beyond;  // the rate is highest here
  std::vector<ScalePrediction> predictions;
};

ScaleAnalysis analyse_scale(const ScaleResult& result, ScaleAxis axis,
                            const std::vector<uint64_t>& predict);

/// "amdahl"
std::string_view name_of(ScalingModel model);

}  // namespace stoker
