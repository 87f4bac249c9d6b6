// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "format/hdf5_dataset.h"

namespace stoker {

/// Where one chunk lies.
struct Hdf5Chunk {
  uint64_t address = kNowhere;
  uint64_t length = 0;  // as stored
  uint32_t mask = 0;    // filters that were left out
};

/// The chunks of a dataset, by their number: chunks are counted like elements, in C order, over the
/// grid that covers the dataset as it is now.
class Hdf5ChunkTable {
 public:
  /// Reads the index of the chunks. Throws Hdf5Error where it is damaged.
  Hdf5ChunkTable(Hdf5File& file, const Hdf5Dataset& dataset);

  /// Chunks along each dimension.
  const std::vector<uint64_t>& grid() const { return grid_; }
  uint64_t chunk_bytes() const { return chunk_bytes_; }
  /// Nothing where it was never written.
  std::optional<Hdf5Chunk> find(uint64_t number) const;
  size_t written() const { return chunks_.size(); }
  /// All that were written, each once, by number. Throws Hdf5Error where there are more than the
  /// file can hold.
  void each(const std::function<void(uint64_t number, const Hdf5Chunk& chunk)>& take) const;

 private:
  struct Entry {
    uint64_t number;
    Hdf5Chunk chunk;
  };

  /// Takes the chunk at these coordinates; those outside of the dataset are left alone.
  void add(const std::vector<uint64_t>& at, Hdf5Chunk chunk);
  void read_btree1(Hdf5File& file);
  void read_btree2(Hdf5File& file);
  void read_array(Hdf5File& file);
  /// Where chunk `number` of an array lies; arrays count over the greatest size.
  std::vector<uint64_t> coordinates(uint64_t number) const;

  const Hdf5Dataset& dataset_;
  uint64_t file_bytes_;
  uint64_t seen_ = 0;
  std::vector<uint64_t> grid_;
  uint64_t chunk_bytes_ = 0;
  size_t growing_ = 0;         // the dimension without a limit, of an extensible array
  std::vector<Entry> chunks_;  // by number
};

/// Elements of the arrays in which newer files note their chunks: calls `element` with the number
/// and the bytes of each that was written.
using Hdf5Element = std::function<void(uint64_t number, Hdf5Cursor element)>;
void walk_fixed_array(Hdf5Bytes& bytes, uint64_t header, const Hdf5Element& element);
void walk_extensible_array(Hdf5Bytes& bytes, uint64_t header, const Hdf5Element& element);

}  // namespace stoker
