// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "check/check.h"
#include "check/split_sizes.h"
#include "cli/output.h"

namespace stoker {

/// What `stoker check` prints for a person: what the dataset is, then what was found.
std::string check_report(const CheckResult& result, const CheckOptions& options,
                         const Style& style);

/// The same where it is several datasets: which, and what to run next.
std::string splits_report(const std::string& path, const std::vector<SplitSize>& splits,
                          std::string_view other_reading, const Style& style);

}  // namespace stoker
