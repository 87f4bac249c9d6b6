// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "check/check.h"
#include "cli/output.h"

namespace stoker {

/// What `stoker check` prints for a person: what the dataset is, then what was found.
std::string check_report(const CheckResult& result, const CheckOptions& options,
                         const Style& style);

}  // namespace stoker
