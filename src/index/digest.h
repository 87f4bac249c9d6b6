// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/progress.h"
#include "os/file_system.h"

namespace stoker {

/// A range of a shard whose checksum is wanted.
struct DigestRegion {
  uint64_t offset = 0;
  uint64_t length = 0;
  uint32_t crc = 0;        // result
  MutableBytes beginning;  // where given: filled with the first bytes of the region
};

struct Digest {
  uint32_t crc = 0;  // of all bytes
  uint64_t end = 0;  // where they ended: less than asked for when the file is shorter
};

/// Reads [begin, end) once, front to back, and computes the CRC-32C of the whole and of each
/// region; regions are sorted by offset, lie inside and may contain each other.
Digest digest_range(ReadableFile& file, uint64_t begin, uint64_t end,
                    std::span<DigestRegion> regions, Progress* progress);

/// The same by several threads, each reading a stretch of it.
Digest digest_parallel(ReadableFile& file, uint64_t begin, uint64_t end,
                       std::span<DigestRegion> regions, unsigned threads, Progress* progress);

}  // namespace stoker
