// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace stoker {

/// What became of a program that was run to its end.
struct CommandAnswer {
  bool found = false;  // it could be started
  int status = -1;     // its exit status; -1 where it was killed, by us if it took too long
  std::string output, errors;
};

/// Runs a program, looked for in PATH, without a shell and with nothing to read; killed after
/// `seconds`, and where it writes more than any answer of use has (64 MiB).
CommandAnswer command_answer(const std::vector<std::string>& words, double seconds);

/// What a program writes to stdout. Nothing where it does not exist, fails, or takes too long.
std::optional<std::string> command_output(const std::vector<std::string>& words, double seconds);

}  // namespace stoker
