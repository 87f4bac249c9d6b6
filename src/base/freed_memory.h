// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace stoker {

/// Makes malloc keep what is freed, up to 64 MB at the end of its heap, for what is asked for next.
/// Without this it returns the samples of every batch to the system, which clears them page by page
/// for the next batch, and that takes as long as reading them.
void keep_freed_memory();

}  // namespace stoker
