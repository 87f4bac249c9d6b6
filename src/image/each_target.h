// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>

namespace stoker {

/// Runs with each kind of vectors that this CPU and compiler have, one after the other.
template <typename Work>
void with_each_target(const Work& work) {
#if (HWY_TARGETS & (HWY_TARGETS - 1)) == 0
  // One alone, for which Highway's library is not needed: tests/neon has none.
  SCOPED_TRACE(hwy::TargetName(HWY_TARGETS));
  work();
#else
  int64_t targets = hwy::SupportedTargets();
  for (; targets != 0; targets &= targets - 1) {
    const int64_t target = targets & -targets;
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    work();
  }
  hwy::SetSupportedTargetsForTest(0);
#endif
}

}  // namespace stoker
