// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace stoker {

// One function per codec; codec.cpp has the table of them. Each undoes its codec on `stored` and
// stops at `limit` bytes: where that many come, there may be more. `parameters` are those of
// CodecId. Memory grows with what really comes, not with what the bytes promise. Throws
// Error(corrupt) with the cause alone.

std::vector<std::byte> decode_zlib(Bytes stored, std::string_view parameters, uint64_t limit);
std::vector<std::byte> decode_zstd(Bytes stored, std::string_view parameters, uint64_t limit);
std::vector<std::byte> decode_shuffle(Bytes stored, std::string_view parameters, uint64_t limit);
std::vector<std::byte> decode_fletcher32(Bytes stored, std::string_view parameters, uint64_t limit);
std::vector<std::byte> decode_lzf(Bytes stored, std::string_view parameters, uint64_t limit);
std::vector<std::byte> decode_szip(Bytes stored, std::string_view parameters, uint64_t limit);
/// Nothing is stored: `parameters` say how many bytes there are, and what they repeat.
std::vector<std::byte> decode_fill(Bytes stored, std::string_view parameters, uint64_t limit);
std::vector<std::byte> decode_lz4_frame(Bytes stored, std::string_view parameters, uint64_t limit);
std::vector<std::byte> decode_lz4_hadoop(Bytes stored, std::string_view parameters, uint64_t limit);
std::vector<std::byte> decode_lz4_block(Bytes stored, std::string_view parameters, uint64_t limit);
std::vector<std::byte> decode_snappy(Bytes stored, std::string_view parameters, uint64_t limit);
std::vector<std::byte> decode_snappy_part(Bytes stored, std::string_view parameters,
                                          uint64_t limit);

}  // namespace stoker
