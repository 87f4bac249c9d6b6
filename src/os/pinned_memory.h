// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace stoker {

/// Fixes memory in its place, so that a GPU copies from it by itself while everybody goes on. False
/// where there is no NVIDIA driver, or it will not: then the memory is as before.
bool pin_memory(void* data, size_t size);
/// REQUIRES: pin_memory() said true.
void unpin_memory(void* data);

}  // namespace stoker
