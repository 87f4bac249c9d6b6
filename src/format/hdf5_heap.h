// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "format/hdf5_bytes.h"

namespace stoker {

/// Names of the links in a group of the old kind.
class Hdf5LocalHeap {
 public:
  Hdf5LocalHeap(Hdf5Bytes& bytes, uint64_t address);
  /// The NUL-terminated text at `at`.
  std::string text(uint64_t at) const;

 private:
  uint64_t offset_ = 0;
  std::vector<std::byte> data_;
};

/// Links of a group of the new kind that has many. Objects are found through their ids.
class Hdf5FractalHeap {
 public:
  Hdf5FractalHeap(Hdf5Bytes& bytes, uint64_t address);
  struct Object {
    uint64_t address = 0;
    std::vector<std::byte> bytes;
  };
  /// `id` as a B-tree's record has it.
  Object object(Hdf5Cursor id);

 private:
  uint64_t row_size(unsigned row) const;   // bytes of one block of that row
  uint64_t row_begin(unsigned row) const;  // heap offset at which it begins
  unsigned row_of(uint64_t heap_offset) const;
  /// Address of the direct block that holds `heap_offset`, which becomes relative to it.
  uint64_t find_block(uint64_t& heap_offset, uint64_t& block_size);
  uint64_t child_of(uint64_t block, unsigned rows, unsigned row, uint64_t column);

  Hdf5Bytes& bytes_;
  uint64_t largest_object_ = 0;
  uint64_t width_ = 0, first_size_ = 0, largest_direct_ = 0;
  unsigned heap_bits_ = 0;
  uint64_t root_ = kNowhere;
  unsigned root_rows_ = 0;
  unsigned direct_rows_ = 0;
  std::map<uint64_t, std::vector<std::byte>> indirect_;  // blocks read, by address
};

/// What elements of variable length point at. A collection holds up to 65,535 objects.
class Hdf5GlobalHeap {
 public:
  explicit Hdf5GlobalHeap(Hdf5Bytes& bytes) : bytes_(bytes) {}
  struct Object {
    uint64_t offset = 0;  // in the file
    uint64_t length = 0;
  };
  /// Throws Hdf5Error where the collection is damaged or has no such object.
  Object find(uint64_t collection, uint32_t index);

 private:
  struct Collection {
    uint64_t address = 0;
    std::vector<Object> objects;  // by index; offset 0: none
  };
  const Collection& collection(uint64_t address);
  Collection read(uint64_t address);

  // Neighbours lie in the same collection, and files written by several streams take turns.
  static constexpr size_t kKept = 16;
  Hdf5Bytes& bytes_;
  uint64_t objects_ = 0;        // that were read, some several times
  std::list<Collection> kept_;  // the last used in front
};

}  // namespace stoker
