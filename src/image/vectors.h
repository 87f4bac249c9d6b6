// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace stoker {

/// Uses the vectors that $STOKER_VECTORS names instead of the widest that the CPU has, to compare
/// or to find out about a fault; once for the process. Throws Error(usage) where it has no such.
void choose_vectors();

}  // namespace stoker
