// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace stoker {

/// It was not started: there is no such program, or it cannot be run.
class CannotRun : public Error {
 public:
  using Error::Error;
};

/// A command that runs as our child. While it does, signals that were sent to us alone are passed
/// on to it, and processes that lose their parent become our children, so that what they used is
/// known.
class Child {
 public:
  struct Streams {
    int in = -1, out = -1, err = -1;  // -1: ours
    bool new_terminal = false;        // `in` becomes its controlling terminal
  };

  /// Runs on `cores` alone where there are any. Throws Error(not_found) or Error(permission) where
  /// it cannot be started.
  Child(const std::vector<std::string>& command,
        const std::map<std::string, std::string>& environment, const Streams& streams,
        const std::vector<int>& cores = {});
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  /// Readable when take_signals() has something to do.
  int signals() const { return signals_; }
  /// Passes on what came for it, and waits for whoever has ended.
  void take_signals();
  bool running() const { return running_; }
  /// Whether the window changed its size since the last call.
  bool take_resized();
  /// Whether a signal came, for it or for us, that asks to end.
  bool asked_to_stop() const { return asked_to_stop_; }

  // When it runs no more:
  int exit_status() const { return exit_status_; }  // 128 + signal where one ended it
  int signal() const { return signal_; }
  const rusage& usage() const { return usage_; }

 private:
  void reap();

  pid_t pid_ = -1;
  int signals_ = -1;
  sigset_t mask_before_{};
  bool running_ = true;
  bool resized_ = false, asked_to_stop_ = false;
  int exit_status_ = 0, signal_ = 0;
  rusage usage_{};
};

}  // namespace stoker
