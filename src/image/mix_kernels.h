// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "image/finish.h"

namespace stoker {

/// own * share + before * rest, rounded to the type after each; for whatever vectors the CPU has.
/// `type` is no uint8.
void mix_numbers(PixelType type, std::byte* own, const std::byte* before, size_t count, float share,
                 float rest);

}  // namespace stoker
