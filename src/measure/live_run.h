// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "measure/live_steps.h"
#include "results/run.h"

namespace stoker {

/// A run that somebody else records now: what its files say, read as they grow.
class LiveRun {
 public:
  explicit LiveRun(std::string directory) : directory_(std::move(directory)) {}

  /// Takes what is new; throws Error where there is no run any more.
  void update();

  const RunInfo& info() const { return info_; }
  const LiveSteps& steps() const { return steps_; }
  /// How long it runs, or ran.
  double seconds() const { return seconds_; }
  /// What its processes use; nothing where only a Meter records it.
  const std::optional<ResourceSample>& resources() const { return resources_; }
  const ResourceSample& resources_before() const { return before_; }

  /// As of the last update: it says so itself, or no process that records it runs any more. Of a
  /// process on another host, only what it says is known.
  bool over() const { return over_; }

 private:
  void take_files();
  bool is_over() const;

  std::string directory_;
  RunInfo info_;
  LiveSteps steps_;
  GrowingFile resources_file_;
  std::optional<ResourceSample> resources_;
  ResourceSample before_;
  double seconds_ = 0;
  bool over_ = false;
};

}  // namespace stoker
