// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "dataset/extent.h"

namespace stoker {

/// Ids are on disk: never renumber. A codec may be particular to one format.
enum class CodecId : uint16_t { zlib = 1, zstd = 2 };

/// Undoes a chain of codecs, last one first. Throws Error(corrupt) with the cause alone when the
/// bytes are damaged or do not decode to exactly `decoded_length`.
std::vector<std::byte> decode_block(Bytes stored, std::span<const Codec> chain,
                                    uint64_t decoded_length);

}  // namespace stoker
