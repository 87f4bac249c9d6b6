// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/json.h"
#include "pack/destination.h"
#include "pack/pack.h"
#include "pack/plan.h"

namespace stoker {

// What an earlier pack() left at a destination, and whether it is still right.

/// The result of an earlier run with the same options; nothing where there is none. Where it left
/// out what could not be read for the moment, `retried` says how much of that there is. Throws
/// where the source is not what it was then, unless some of that was missing when it was planned.
std::optional<PackResult> complete_already(const Destination& destination, const Source& source,
                                           const PackOptions& options, const Json& wanted);

/// The same plan as the one that was begun, where --overwrite says that anything may go.
std::optional<Plan> plan_to_overwrite(const Destination& destination, const Source& source,
                                      const PackOptions& options, const Json& wanted);

/// The plan to go on with, if there is one. Throws where the destination holds something else, and
/// where the source has changed, unless the plan lacks what could not be read for the moment.
std::optional<Plan> plan_to_continue(const Destination& destination, const Source& source,
                                     const PackOptions& options, const Json& wanted);

}  // namespace stoker
