// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json.h"
#include "cli/output.h"
#include "measure/gpu_worth.h"
#include "measure/scale_analysis.h"

namespace stoker {

/// What `stoker scale` says at its end.
std::string scale_text(const ScaleOptions& options, const ScaleResult& result,
                       const ScaleAnalysis& analysis, const Style& style);
Json scale_document(const ScalePlan& plan, const ScaleResult& result,
                    const ScaleAnalysis& analysis);
/// A line for each width, with a line of names.
std::string scale_csv(const ScaleResult& result);
/// "samples_per_s", as columns and members are called.
std::string_view name_of(ScaleMeasure measure);

Json worth_document(const GpuWorth& worth, const std::optional<HourPrices>& prices);

}  // namespace stoker
