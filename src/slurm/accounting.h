// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "slurm/records.h"

namespace stoker {

// What sacct, squeue and sstat write, as records.

/// The columns that we ask sacct for, as far as `known`, its --helpformat, has them. None of them
/// holds text that a user chose: a name with a newline would become rows.
std::string accounting_columns(std::string_view known);
/// Jobs with their steps. `left_out` counts rows that made no sense.
std::vector<SlurmJob> jobs_from_accounting(std::string_view text, size_t& left_out);

/// The format for squeue's -o whose rows jobs_from_queue() reads.
std::string queue_format();
std::vector<SlurmJob> jobs_from_queue(std::string_view text, size_t& left_out);

/// As accounting_columns(), of sstat.
std::string live_columns(std::string_view known);
/// Puts what sstat says about running steps into a job.
void add_live_use(SlurmJob& job, std::string_view text);

}  // namespace stoker
