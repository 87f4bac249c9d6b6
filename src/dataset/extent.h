// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stoker {

/// In what an extent lies. The number beside it says in which one.
enum class Container : uint8_t {
  absent,  // the sample has no such field
  shard,   // a range of shard `number`
  block,   // a range of the decoded bytes of block `number`
  file,    // a whole file of its own: the key followed by the suffix `number` of its field
  here,    // in the segment itself, for values that lie in no shard (a column of a list)
  pieces,  // several extents in a row: those of the segment's piece table from `offset` on, until
           // their lengths add up to `length`; none of them empty or in pieces itself
};

/// Where the bytes of one field of one sample lie. 24 bytes in a segment.
struct Extent {
  Container container = Container::absent;
  uint32_t number = 0;
  /// A whole file has no offset: there it holds the modification time in ns (0: not recorded).
  uint64_t offset = 0;
  uint64_t length = 0;
  /// CRC-32C of the field's bytes; meaningful in segments of full depth.
  uint32_t crc = 0;

  bool operator==(const Extent&) const = default;
};

/// How a shard's bytes are to be read. All but `none` only front to back.
enum class Compression : uint8_t {
  none,
  gzip,
  zstd,
  fortran,  // an .npy file in Fortran order, read as if it were in C order
  tiled,    // rows of an array whose chunks cut through them: see tiled_view.h
};

/// One shard, as a segment identifies it. A segment may describe only the part of a large shard
/// that lies in [begin, end); its parts cover the shard without a gap.
struct Shard {
  std::string path;  // relative to the dataset's root
  uint64_t size = 0;
  int64_t modified_ns = 0;  // a hint; 0 where not recorded
  uint64_t begin = 0, end = 0;
  uint32_t crc = 0;  // of [begin, end), at full depth
  Compression compression = Compression::none;
  // Of a compressed shard, begin, end and extents count decoded bytes.
  // With Compression::tiled: the array, as to_bytes() in tiled_view.h has it. Of a segment on disk
  // Segment::view() gives it.
  std::string view = {};

  bool operator==(const Shard&) const = default;
};

/// Whether this is the part that a shard begins with: its shard is counted there. A view only shows
/// an array of a file that is a shard itself.
inline bool begins(const Shard& shard) {
  if (shard.compression == Compression::tiled) return false;
  const bool empty = shard.size == 0 || shard.compression != Compression::none;
  return shard.begin == 0 && (shard.end > 0 || empty);
}

/// One step of a codec chain: an id from codec.h and its parameters, as the format stores them.
struct Codec {
  uint16_t id = 0;
  std::string parameters;

  bool operator==(const Codec&) const = default;
};

/// Bytes that must be decoded together.
struct Block {
  uint32_t shard = 0;
  uint64_t offset = 0;
  uint64_t stored_length = 0;
  uint64_t decoded_length = 0;
  uint32_t codecs = 0;  // which chain of the segment's codec table
  uint32_t stored_crc = 0;
  bool has_stored_crc = false;

  bool operator==(const Block&) const = default;
};

}  // namespace stoker
