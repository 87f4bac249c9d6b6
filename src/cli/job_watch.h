// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/progress.h"

namespace stoker {

/// `stoker job --watch`: shows a job until it ends, every so many seconds. Returns the exit code.
int watch_job(const std::string& id, unsigned every_s, Progress& progress);
/// `stoker job --here`: on a node of the job, a line for each look, until the job takes it along.
int report_node(unsigned every_s, Progress& progress);

}  // namespace stoker
