// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace stoker {

/// Whether a system call that failed with this errno may succeed when tried again: a network file
/// system that was away for a moment, say; not a file that is damaged or not ours to read.
bool is_transient(int os_error);

}  // namespace stoker
