// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace stoker {

struct SpawnOptions {
  int output = -1;         // descriptor that becomes its stdout; -1: ours
  int errors = -1;         // and its stderr
  bool silent = false;     // stderr is thrown away
  bool own_group = false;  // Ctrl-C does not reach it: whoever starts it ends it
};

/// Starts a program, looked for in PATH, without a shell and with nothing to read. Returns 0, or
/// the errno that says why it could not be started.
int spawn(const std::vector<std::string>& words, const SpawnOptions& options, pid_t& child);

/// Waits until it has ended; its status is as waitpid() gives it.
int wait_for_end(pid_t child);

}  // namespace stoker
