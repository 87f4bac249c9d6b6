// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <termios.h>

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "measure/time.h"
#include "results/run.h"

namespace stoker {

/// The last seconds of a run, as far as its files tell.
class LiveSteps {
 public:
  /// Takes what its processes have written since the last call.
  void update(const std::string& run_directory);
  /// Samples a second of the last seconds, the newest last; all ranks together.
  const std::deque<double>& rates() const { return rates_; }
  double samples_per_s() const { return rates_.empty() ? 0 : rates_.back(); }
  double wait_share() const { return wait_share_; }
  bool any() const { return steps_ > 0; }
  uint64_t steps() const { return steps_; }

 private:
  std::map<std::string, uint64_t> offsets_;
  std::deque<double> rates_;
  double wait_share_ = 0;
  uint64_t steps_ = 0;
};

/// "samples/s 1,234 ▂▃▅▇ · waiting 12 % · 3.2 of 8 cores …": one or two lines of at most `width`.
std::vector<std::string> live_lines(const RunInfo& info, const ResourceSample& now,
                                    const ResourceSample& before, const LiveSteps& steps,
                                    size_t width, bool unicode);

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
