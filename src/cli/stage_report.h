// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "cli/output.h"
#include "stage/inventory.h"
#include "stage/stage.h"

namespace stoker {

// What `stoker stage` prints for people.

std::string stage_report(const StageResult& result, const Style& style);
/// From the documents of several nodes.
std::string nodes_report(const Json& document, const Style& style);
std::string payoff_line(const Payoff& payoff);
/// With a column for the node where `nodes` says so.
std::string staged_list_report(const StagedList& list, bool nodes, const Style& style);
/// From the documents of several nodes.
std::string cleaned_nodes_report(const std::vector<Json>& documents, const Style& style);
std::string clean_report(const CleanResult& result, const Style& style);

}  // namespace stoker
