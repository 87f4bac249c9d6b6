// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace stoker {

/// Whether a system call that failed with this errno may succeed when tried again: a network file
/// system that was away for a moment, or permissions that somebody has forgotten to give; not a
/// file that is damaged.
bool is_transient(int os_error);

}  // namespace stoker
