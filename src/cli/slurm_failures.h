// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace stoker {

/// A job that did not end well.
struct JobFailure {
  std::string why;         // "job 183 reached its time limit of 1 min: ask for more with --time"
  int exit_status = 0;     // of its script; 0 where something else ended it
  bool has_cause = false;  // `why` says more than that it failed
};

/// Of the first of these jobs that failed, by what Slurm says and what the program wrote to the
/// job's log, DIRECTORY/NAME-NUMBER.log. `why` is empty where none did, or Slurm does not say.
JobFailure first_failure(const std::vector<std::string>& numbers, const std::string& directory);

/// Whether Slurm says that a job was ended, so that its script cannot have finished.
bool was_ended(const std::string& number);

}  // namespace stoker
