// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "dataset/extent.h"

namespace stoker {

/// Ids are on disk: never renumber. A codec may be particular to one format. Parameters are
/// little-endian u32, one after the other.
enum class CodecId : uint16_t {
  zlib = 1,  // or gzip
  zstd = 2,
  lz4_frame = 3,
  lz4_block = 4,  // LZ4 without a frame
  snappy = 5,
  shuffle = 6,     // HDF5: the n-th bytes of all elements together; element size
  fletcher32 = 7,  // HDF5: a checksum in the last 4 bytes
  lzf = 8,
  szip = 9,          // options mask, bits per pixel, pixels per block, pixels per scanline
  snappy_part = 10,  // of a snappy stream, without the length in front; refers to nothing outside
  lz4_hadoop = 11,   // LZ4 blocks, each with both its lengths in front; or one block without any
  fill = 16,  // nothing is stored: u32 length, then the bytes that are repeated (zeros if none)
};

/// What a sample that was never written may take: it is made up in memory.
inline constexpr uint64_t kLargestFill = uint64_t{1} << 26;

/// More bytes than `stored_length` bytes can decode to: whoever claims more lies.
uint64_t decoded_limit(std::span<const Codec> chain, uint64_t stored_length);

/// Undoes a chain of codecs, last one first. Throws Error(corrupt) with the cause alone when the
/// bytes are damaged or do not decode to exactly `decoded_length`.
std::vector<std::byte> decode_block(Bytes stored, std::span<const Codec> chain,
                                    uint64_t decoded_length);

}  // namespace stoker
