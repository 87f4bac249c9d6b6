// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "os/command_output.h"

namespace stoker {

/// Runs one of the commands by which Slurm is asked: squeue, sacct, sstat, scontrol. What it
/// answers is what its documentation says, whatever variables the user has set to see less of it,
/// or in another form; moments are seconds since 1970.
CommandAnswer slurm_answer(const std::vector<std::string>& words, double seconds);

}  // namespace stoker
