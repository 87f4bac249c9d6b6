// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <termios.h>

#include <string>
#include <string_view>
#include <vector>

#include "measure/live_steps.h"
#include "measure/time.h"
#include "results/run.h"

namespace stoker {

/// "12 s · 1,234 samples/s ▂▃▅▇ · waiting 12 % · 345 steps"; without steps, only how long it runs.
std::string steps_line(double seconds, const LiveSteps& steps, bool unicode);
/// "CPU [■■■ ] 3.2 of 8 cores · memory 1.2 GB · 24 threads …"
std::string resources_line(const RunInfo& info, const ResourceSample& now,
                           const ResourceSample& before, bool unicode);

/// A terminal for the command in the upper part of ours; the lower lines are the live view.
class LiveTerminal final : public TimeOptions::Terminal {
 public:
  /// Nothing where stdin, stdout and stderr are not all a terminal that can do this.
  static bool possible();
  LiveTerminal();
  ~LiveTerminal() override;
  LiveTerminal(const LiveTerminal&) = delete;
  LiveTerminal& operator=(const LiveTerminal&) = delete;

  int command_side() override { return theirs_; }
  int our_side() override { return ours_; }
  int typed() override;
  void show(std::string_view output) override;
  void resized() override;
  void draw(const std::vector<std::string>& lines);
  size_t width() const { return columns_; }

 private:
  void take_size();

  int ours_ = -1, theirs_ = -1;
  termios before_{};
  size_t rows_ = 24, columns_ = 80;
  std::vector<std::string> lines_;
};

}  // namespace stoker
