// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "dataset/extent.h"

namespace stoker {

/// An array that lies in chunks which cut through its rows, described so that its rows can be shown
/// one after the other: what HDF5 makes of `chunks=True`. Chunks are counted like elements, in C
/// order, over the grid that covers the array.
struct TiledView {
  struct Chunk {
    uint64_t number = 0;
    uint64_t offset = 0;  // in the file
    uint64_t stored_length = 0;
    uint32_t chain = 0;  // which of `chains`

    bool operator==(const Chunk&) const = default;
  };

  uint64_t rows = 0;
  std::vector<uint64_t> dims;   // of a row, in elements
  std::vector<uint64_t> chunk;  // of a chunk, its rows first; stored in full also at the edges
  uint64_t stored_element = 0;  // bytes of an element in a chunk
  uint64_t begin = 0;           // which of them are shown: all, or a member of a compound
  uint64_t element = 0;
  std::string fill;  // a stored element of chunks that were never written; empty: zeros
  std::vector<std::vector<Codec>> chains;
  std::vector<Chunk> chunks;  // by number; those that were never written are missing

  uint64_t row_bytes() const;       // of a row as it is shown
  uint64_t chunk_bytes() const;     // of a chunk as it is decoded
  uint64_t chunks_per_row() const;  // of chunks
  /// The chunks that were written of the n-th row of chunks.
  std::span<const Chunk> written(uint64_t n) const;
  /// How many rows are brought together at a time in so much memory: of one row of chunks at most,
  /// one at least.
  uint64_t band_rows(uint64_t memory) const;

  bool operator==(const TiledView&) const = default;
};

/// docs/formats/index.md describes the bytes.
std::string to_bytes(const TiledView& view);
/// Throws Error(corrupt) with the cause alone where they are no such description. All products of
/// what it returns fit 63 bits.
TiledView parse_tiled_view(Bytes bytes);

/// Sees that samples which take much memory are there in a file of so many bytes, and not on paper
/// alone. Throws Error(unsupported) with the cause alone.
void refuse_unfounded(const TiledView& view, uint64_t file_size);

}  // namespace stoker
