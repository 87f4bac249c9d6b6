// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "measure/gpu_worth.h"
#include "measure/scale_analysis.h"

namespace stoker {

/// A sweep as `stoker scale --json` prints it; docs/commands/scale.md describes it.
Json scale_document(const ScalePlan& plan, const ScaleResult& result,
                    const ScaleAnalysis& analysis);
Json worth_document(const GpuWorth& worth, const std::optional<HourPrices>& prices);

/// "samples_per_s", as columns and members are called.
std::string_view name_of(ScaleMeasure measure);
/// Of the rate, or of the seconds, whichever was measured; nothing where these may be any number.
std::optional<Interval> shown_interval(const ScaleWidth& width, ScaleMeasure measure);
double shown_value(const ScaleWidth& width, ScaleMeasure measure);
/// The advice is plain ASCII; people write it with a sign.
std::string with_signs(std::string text, bool unicode);

}  // namespace stoker
