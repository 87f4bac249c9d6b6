// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stoker {

/// After how many days without a touch the site deletes files at this place; nothing where its file
/// has no rule for it.
std::optional<double> purge_days(const std::string& place);

/// When a file was read or written last.
int64_t last_touched_ns(const std::string& path);

}  // namespace stoker
