// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "results/machine.h"

namespace stoker {

/// What `stoker probe` found, for a person. `profiles` are the files that keep it.
std::string probe_report(const Machine& machine, const std::vector<std::string>& profiles,
                         const Style& style);

}  // namespace stoker
