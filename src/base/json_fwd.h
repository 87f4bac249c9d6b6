// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace stoker {

/// JSON whose objects keep the order in which they were written, so files are reproducible.
/// Headers name it; whoever uses it includes base/json.h, which takes a second to compile.
using Json = nlohmann::ordered_json;

}  // namespace stoker
