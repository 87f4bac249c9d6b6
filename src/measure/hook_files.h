// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stoker {

/// Names and contents of what Python imports in the command; made from python/hook when built.
const std::vector<std::pair<std::string_view, std::string_view>>& hook_files();

/// Writes them into the run directory, and returns where; the directory goes onto PYTHONPATH.
std::string write_hook_files(const std::string& run_directory);

}  // namespace stoker
