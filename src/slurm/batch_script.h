// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

/// What a job asks for, as sbatch takes it; what is empty or 0 is the cluster's choice.
struct JobRequest {
  std::string partition, account, qos, time, memory, gpus;
  uint64_t cpus = 0;  // of a task
  uint64_t nodes = 0;
};

struct BatchScript {
  std::string name;
  JobRequest request;
  std::string array;              // "1-4"; empty: one job
  std::string log;                // absolute path; %j is the job's number, of an array's task too
  std::string body;               // shell
  std::vector<std::string> more;  // further options of sbatch, as they are written
};

/// One word for a shell, whatever is in it: nothing in it is a command.
std::string shell_quoted(std::string_view text);
/// All of them, with a space between.
std::string shell_quoted(const std::vector<std::string>& words);

/// The file to give to sbatch. Throws Error(usage) where a value could be read as something else.
std::string text_of(const BatchScript& script);

}  // namespace stoker
