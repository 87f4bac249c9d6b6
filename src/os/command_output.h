// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace stoker {

struct CommandResult {
  int status = 0;  // exit status
  std::string output, errors;
};

/// Runs a program, looked for in PATH, with nothing on its stdin. Nothing where it does not exist,
/// dies by a signal, or takes longer than `seconds`: then it is killed. No shell is involved.
std::optional<CommandResult> run_command(const std::vector<std::string>& words, double seconds);

/// What a program, looked for in PATH, writes to stdout. Nothing where it does not exist, fails, or
/// takes longer than `seconds`: then it is killed. No shell is involved.
std::optional<std::string> command_output(const std::vector<std::string>& words, double seconds);

}  // namespace stoker
