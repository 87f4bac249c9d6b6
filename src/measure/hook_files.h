// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stoker {

/// Names and contents of what Python imports in the command; made from python/hook when built.
const std::vector<std::pair<std::string_view, std::string_view>>& hook_files();

/// Writes them into the run directory, or where others could replace that, into the user's state
/// directory, which every node of a job sees as well; `note` then says so. Returns the directory
/// that goes onto PYTHONPATH: nobody else can write to it, or put another in its place. Where there
/// is no such directory, returns nothing, and `note` says what is not measured.
std::string write_hook_files(const std::string& run_directory, std::string& note);

}  // namespace stoker
