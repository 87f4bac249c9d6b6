// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "dataset/segment.h"

namespace stoker {

/// Of a shard that was indexed whole and has `size` bytes now: "is truncated: 37564 of 77824 bytes
/// are there; 26 samples from '000124' on are missing".
std::string truncation_in_words(const Segment& segment, uint32_t number, uint64_t size);

}  // namespace stoker
