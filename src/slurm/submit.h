// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace stoker {

/// Gives a script to sbatch. `dependency` is as sbatch has it ("afterok:12"), or empty. Returns the
/// job's number; throws Error(io) with what sbatch says.
std::string submit_job(const std::string& script, const std::string& dependency);

/// Jobs of this user that wait or run, by number: how many of their tasks do the one or the other.
struct QueuedTasks {
  size_t waiting = 0, running = 0;
  std::string reason;  // why one of them waits, as Slurm puts it
};
std::map<std::string, QueuedTasks> queued_jobs();

/// Cancels what of these waits or runs.
void cancel_jobs(const std::vector<std::string>& jobs);

}  // namespace stoker
