// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/progress.h"
#include "results/run.h"

namespace stoker {

/// How a command is run and measured.
struct TimeOptions {
  std::vector<std::string> command;
  std::string directory;     // of the run; must not exist; empty: as make_run_directory() has it
  bool hook = true;          // watch the data iterators of Python frameworks
  std::string pattern;       // a regular expression whose first group is samples a second
  double interval_s = 0.25;  // between two looks at the processes, or more where that costs more
  std::map<std::string, std::string> environment;  // beside ours, or instead of it
  std::vector<int> cores;  // the only ones it may run on; none: where it is allowed to
  int output = -1;         // where what it writes goes, of both streams; -1: where ours goes
  /// Where the command's output goes besides its own place: a terminal of its own, drawn around.
  struct Terminal;
  Terminal* terminal = nullptr;
  /// Called after each look, and with whatever is known then.
  std::function<void(const RunInfo&, const ResourceSample&)> each_look;
  /// Called, before the command is started, with what the user should know: where things went that
  /// could not go where they were expected.
  std::function<void(const std::string& note)> each_note;
};

/// What stands between the command and the real terminal.
struct TimeOptions::Terminal {
  virtual ~Terminal() = default;
  /// The descriptor that becomes the command's standard input, output and error.
  virtual int command_side() = 0;
  /// The descriptor from which its output comes, and to which goes what is typed.
  virtual int our_side() = 0;
  virtual int typed() = 0;
  virtual void show(std::string_view output) = 0;
  virtual void resized() = 0;
};

/// Runs the command to its end. Throws Error(not_found) or Error(permission) where it cannot be
/// started, Error(io) where the run directory cannot be made. The result is also in the directory.
RunInfo time_command(const TimeOptions& options);

/// Watches a process that already runs, until it ends or `progress` says stop.
RunInfo time_attached(pid_t pid, const TimeOptions& options, const Progress& progress);

/// Makes the directory of a run, and says in it what is run; time_command() does that itself.
/// `note` as for make_run_directory().
RunInfo begin_run(const std::string& directory, const std::vector<std::string>& command,
                  std::string& note);

/// A new directory in stoker-runs/, or in the user's state directory where others could replace it
/// here, or `wanted`, which must not exist. `note` says where it is if not in stoker-runs/.
std::string make_run_directory(const std::string& wanted, std::string& note);

}  // namespace stoker
