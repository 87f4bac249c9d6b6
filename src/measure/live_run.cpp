// SPDX-License-Identifier: Apache-2.0
#include "measure/live_run.h"

#include <algorithm>

#include "base/error.h"
#include "os/node.h"
#include "os/process_tree.h"

namespace stoker {

void LiveRun::update() {
  info_ = read_run_info(directory_);
  take_files();
  over_ = is_over();
  if (over_) take_files();  // what was written last, in between
  const int64_t now = info_.host == host_name() ? monotonic_ns() - info_.clock_begin_ns
                                                : time_of_day_ns() - info_.time_of_day_begin_ns;
  seconds_ = info_.ended ? info_.seconds : std::max(0.0, static_cast<double>(now) * 1e-9);
}

void LiveRun::take_files() {
  steps_.update(info_);
  try {
    const auto added = read_new_resources(directory_ + "/resources.columns", resources_file_);
    if (added.empty()) return;
    before_ = resources_.value_or(ResourceSample());
    resources_ = added.back();
  } catch (const Error&) {  // there is none
  }
}

bool LiveRun::is_over() const {
  if (info_.ended) return true;
  const bool here = info_.pid > 0 && info_.host == host_name();
  if (here && process_runs(static_cast<pid_t>(info_.pid), info_.clock_begin_ns)) return false;
  // `stoker time` says itself when it ends, unless it was killed.
  if (resources_) return here;
  return steps_.any_file() ? !steps_.any_writer_left(info_) : here;
}

}  // namespace stoker
