// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "slurm/records.h"

namespace stoker {

/// What a job's state means: "ended by its time limit", "waits".
std::string_view state_in_words(std::string_view state);
/// Why a job waits or ended so: "other jobs come first"; empty where there is no reason, the word
/// itself where it is one we do not know.
std::string reason_in_words(std::string_view reason);
/// "exit status 3", "killed by signal 9"; empty where it ended well.
std::string exit_in_words(const SlurmJob& job);

}  // namespace stoker
