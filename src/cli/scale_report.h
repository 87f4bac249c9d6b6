// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/output.h"
#include "measure/scale_analysis.h"

namespace stoker {

/// What `stoker scale` says at its end.
std::string scale_text(const ScaleOptions& options, const ScaleResult& result,
                       const ScaleAnalysis& analysis, const Style& style);
/// A line for each width, with a line of names.
std::string scale_csv(const ScaleResult& result);

}  // namespace stoker
