// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "cli/output.h"
#include "stage/inventory.h"
#include "stage/stage.h"

namespace stoker {

// What `stoker stage` prints, for people and as documents.

std::string stage_report(const StageResult& result, const Style& style);
Json stage_document(const StageResult& result);
std::string payoff_line(const Payoff& payoff);
std::string staged_list_report(const std::vector<StagedItem>& items, const Style& style);
Json staged_list_document(const std::vector<StagedItem>& items);
std::string clean_report(const CleanResult& result, const Style& style);
Json clean_document(const CleanResult& result);

}  // namespace stoker
