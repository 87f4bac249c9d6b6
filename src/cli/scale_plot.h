// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/output.h"
#include "measure/scale_analysis.h"

namespace stoker {

// Both show the speedup over n: what was measured, the ideal, and the model that predicts best.

std::string scale_plot(const ScaleOptions& options, const ScaleResult& result,
                       const ScaleAnalysis& analysis, const Style& style);
/// A document of its own, with the intervals of the points.
std::string scale_svg(const ScaleOptions& options, const ScaleResult& result,
                      const ScaleAnalysis& analysis);

}  // namespace stoker
