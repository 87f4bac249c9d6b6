// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/progress.h"

namespace stoker {

/// How many nodes this process speaks for: those of the job whose script it is part of. 1 outside
/// of a job, in a job of one node, and in a task that srun has started, which is on its own node.
unsigned nodes_to_stage_on();

/// What each task of `srun --label` has printed: its lines begin with the task's number, with
/// blanks before it where others have more digits.
std::map<unsigned, std::string> lines_by_task(std::string_view text);

/// Runs `words`, a command of this program that prints one JSON document, once on each of `nodes`
/// nodes of the job, through srun, and returns the documents. Throws Error(io) where srun cannot,
/// with what it said, and Error(interrupted) once all have stopped.
std::vector<Json> run_on_nodes(unsigned nodes, const std::vector<std::string>& words,
                               const Progress& progress);

/// What `stage --json` prints for several nodes: sums, and each node's own document.
Json nodes_document(const std::vector<Json>& documents);
/// The same for `stage --clean --json`.
Json cleaned_nodes_document(const std::vector<Json>& documents);

}  // namespace stoker
