// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/json_fwd.h"
#include "stage/inventory.h"
#include "stage/stage.h"

namespace stoker {

// What --json prints and Python gets; docs/commands/stage.md describes it member by member.

Json stage_document(const StageResult& result);
Json staged_list_document(const StagedList& list);
/// Adds what the document of one node lists. It comes from this program, on another node.
void add_listed(const Json& document, StagedList& list);
Json clean_document(const CleanResult& result);

}  // namespace stoker
