// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "dataset/scan.h"
#include "dataset/tiled_view.h"
#include "format/hdf5_chunks.h"
#include "format/hdf5_dataset.h"

namespace stoker {

/// Where the rows of a dataset lie: what the first dimension counts.
class Hdf5Rows {
 public:
  /// Throws Hdf5Error or Error: damaged, or stored in a way that is not supported. `shard` is the
  /// number that the sink gave to the file; blocks are announced when they are needed.
  Hdf5Rows(Hdf5File& file, const Hdf5Dataset& dataset, uint32_t shard, ScanSink& sink);

  /// A row that lies in more pieces is not located: a view shows it.
  static constexpr uint64_t kMostPieces = 64;

  const Hdf5Dataset& dataset() const { return dataset_; }
  uint32_t shard() const { return shard_; }
  /// How many rows the file has bytes for; those of the others are the fill value, or empty.
  uint64_t stored() const;
  /// Where the rows end that are lost with `row`, which has just been found to be: those of its
  /// chunk.
  uint64_t lost_until(uint64_t row) const;
  /// In how many pieces a row lies.
  uint64_t pieces() const { return pieces_; }
  /// The rows in the order of their elements, of each of those the `length` bytes from `from` on:
  /// all, or those of a member. Throws Hdf5Error or Error where they cannot be.
  TiledView view(uint64_t from, uint64_t length) const;

  /// Appends the extents that `length` bytes from byte `from` of a row lie in. Throws Hdf5Error
  /// where the file has not got them. REQUIRES that a row lies in no more than kMostPieces.
  void locate(uint64_t row, uint64_t from, uint64_t length, std::vector<Extent>& extents);

  /// The bytes themselves, until the next call. REQUIRES that they lie in one piece.
  Bytes read(uint64_t row, uint64_t from, uint64_t length);

 private:
  /// Bytes of a row that lie together.
  struct Run {
    uint64_t at = 0;  // in the row
    uint64_t length = 0;
    size_t slot = 0;      // which of the chunks that a row touches
    uint64_t inside = 0;  // where in the chunk, for the chunk's first row
  };
  /// A chunk of the current row of chunks.
  struct Place {
    Extent extent;  // of all its bytes
    std::string damage;
    uint64_t damage_at = 0;
    Block block;  // where the extent is one
    uint32_t mask = 0;
  };

  void count_pieces();
  void find_runs();
  void add_chunks(TiledView& view) const;
  void add_stretches(TiledView& view) const;
  void find_places(uint64_t chunk_row);
  Place place_of(uint64_t chunk_number);
  Extent fill_extent();
  uint32_t codecs_for(uint32_t mask);
  const std::vector<std::byte>& decoded(const Extent& extent);

  Hdf5File& file_;
  const Hdf5Dataset& dataset_;
  uint32_t shard_;
  ScanSink& sink_;
  std::optional<Hdf5ChunkTable> table_;
  uint64_t pieces_ = 0;
  size_t split_ = 0;  // the last dimension that chunks cut; 0: none
  std::vector<Run> runs_;
  std::vector<uint64_t> slots_;  // chunks of a row of chunks that a row touches
  uint64_t row_stride_ = 0;      // bytes from one row to the next in a chunk
  uint64_t chunks_per_row_ = 1;  // of chunks
  uint64_t chunk_row_ = ~uint64_t{0};
  std::vector<Place> places_;  // by slot, of chunk_row_
  std::optional<Extent> fill_;
  std::unordered_map<uint32_t, uint32_t> codecs_;  // by mask

  // What read() has in memory.
  std::vector<std::byte> window_;
  uint64_t window_at_ = 0;
  std::optional<uint32_t> decoded_block_;
  std::vector<std::byte> decoded_;
};

}  // namespace stoker
