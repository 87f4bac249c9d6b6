// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>

namespace stoker {

/// Runs with each kind of vectors that this CPU and compiler have, one after the other.
template <typename Work>
void with_each_target(const Work& work) {
  int64_t targets = hwy::SupportedTargets();
  for (; targets != 0; targets &= targets - 1) {
    const int64_t target = targets & -targets;
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    work();
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace stoker
