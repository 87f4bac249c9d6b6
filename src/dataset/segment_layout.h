// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dataset/extent.h"

namespace stoker {

// The bytes of a segment, shared by the one that writes and the one that reads them;
// docs/formats/index.md describes them for everybody else. All integers are little-endian.

inline constexpr uint64_t kSegmentMagic = 0x3047455352454B53;  // "SKERSEG0"
inline constexpr uint32_t kSegmentVersion = 0;

struct SegmentHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t table_count;
  uint64_t samples;
  uint64_t depth;       // 0 structure, 1 full
  uint64_t data_begin;  // where the tables lie; pages count from here
  uint64_t data_size;
  uint64_t page_count;
  uint32_t crc;  // of this header up to here, the directory and the page checksums
  uint32_t reserved;
};
static_assert(sizeof(SegmentHeader) == 64);

struct TableRecord {
  uint16_t kind;
  uint16_t field;  // of this segment; 0 where the table belongs to none
  uint32_t element_size;
  uint64_t offset;  // from data_begin
  uint64_t length;  // in bytes
};
static_assert(sizeof(TableRecord) == 24);

struct ExtentRecord {
  uint64_t offset;
  uint64_t length;
  uint32_t where;  // container in the upper 3 bits, number in the lower 29
  uint32_t crc;
};
static_assert(sizeof(ExtentRecord) == 24);

/// Extents of all samples that lie at equal distances in one container.
struct RunRecord {
  uint64_t offset;  // of the first sample
  uint64_t stride;
  uint64_t length;
  uint32_t where;
  uint32_t reserved;
};
static_assert(sizeof(RunRecord) == 32);

struct ShardRecord {
  uint64_t path_offset;
  uint32_t path_length;
  uint32_t compression;
  uint64_t size;
  int64_t modified_ns;
  uint64_t begin;
  uint64_t end;
  uint32_t crc;
  uint32_t view;  // with Compression::tiled: which
};
static_assert(sizeof(ShardRecord) == 56);

struct BlockRecord {
  uint32_t shard;
  uint32_t codecs;
  uint64_t offset;
  uint64_t stored_length;
  uint64_t decoded_length;
  uint32_t stored_crc;
  uint32_t has_stored_crc;
};
static_assert(sizeof(BlockRecord) == 40);

inline constexpr uint32_t kMaxContainerNumber = (1U << 29) - 1;

constexpr ExtentRecord to_record(const Extent& extent) {
  return {extent.offset, extent.length,
          static_cast<uint32_t>(extent.container) << 29 | extent.number, extent.crc};
}

constexpr Extent from_record(const ExtentRecord& record) {
  return {static_cast<Container>(record.where >> 29), record.where & kMaxContainerNumber,
          record.offset, record.length, record.crc};
}

}  // namespace stoker
