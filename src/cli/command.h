// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "base/progress.h"
#include "cli/options.h"

namespace stoker {

// Exit codes, of every command.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;
// Of those that run another program, where that cannot be run; as a shell has it.
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;

/// A command: one file x_command.cpp that parses, calls and prints, and one row in main.cpp.
struct Command {
  std::string_view name;
  std::string_view summary;                       // one line, for `stoker --help`
  std::span<const std::string_view> positionals;  // "SRC", "DST"
  std::string_view description;
  std::span<const Option> options;
  std::string_view examples;
  bool resumable = false;  // goes on where it was interrupted
  /// Returns the exit code. Everything that long work needs to stop and to be shown is `progress`.
  int (*run)(const Arguments& arguments, Progress& progress) = nullptr;
};

extern const Command kPackCommand;
extern const Command kIndexCommand;
extern const Command kJobCommand;
extern const Command kCheckCommand;
extern const Command kLoadCommand;
extern const Command kStageCommand;
extern const Command kTimeCommand;
extern const Command kProbeCommand;
extern const Command kScaleCommand;
extern const Command kReportCommand;

}  // namespace stoker
