// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace stoker {

/// Snappy's writers compress so many bytes at a time, and refer to nothing in front of them.
inline constexpr uint64_t kSnappyPart = 65536;

/// Offsets in a snappy stream at which each kSnappyPart of its decoded bytes begin, then its end.
/// Empty where one of them does not stand for itself, or the stream is damaged.
std::vector<uint64_t> cut_snappy(Bytes stream, uint64_t decoded_length);

}  // namespace stoker
