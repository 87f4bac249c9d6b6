// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "dataset/segment_writer.h"
#include "format/format.h"

namespace stoker {

/// A field of a sample whose bytes have to be fetched by themselves.
struct FieldPlace {
  uint64_t sample = 0;
  uint32_t field = 0;
  size_t wanted = 0;  // of its first bytes
  // Results:
  uint32_t crc = 0;
  std::vector<std::byte> beginning;
  std::string cause;  // why it could not be read
  int os_error = 0;   // see Error
  uint32_t shard = 0;
  uint64_t offset = 0;  // where in the shard it, or its first block, begins
};

/// Computes the checksums of fields in blocks, in several pieces, or scattered over their shards.
/// Blocks are decoded once or little more, by several threads.
void digest_fields(const SegmentWriter& segment, const Source& source,
                   std::vector<FieldPlace>& places, unsigned threads, Progress* progress);

}  // namespace stoker
