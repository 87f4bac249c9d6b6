// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/hdf5_heap.h"
#include "format/hdf5_rows.h"

namespace stoker {

/// One field of the samples: a dataset, or a member of one whose elements are compounds.
class Hdf5Column {
 public:
  /// `type` is the dataset's, or that of a member which lies `offset` bytes into each element.
  /// Throws Error(unsupported) where such values are no field. Dataset, rows and heap must outlive
  /// it.
  Hdf5Column(std::string name, Hdf5Rows& rows, Hdf5GlobalHeap& heap, const Hdf5Type& type,
             uint64_t offset);

  const std::string& name() const { return name_; }
  /// In how many pieces a value lies. Of more than Hdf5Rows::kMostPieces, find() needs a view.
  uint64_t pieces() const;
  TiledView view() const { return rows_.view(offset_, type_.size); }
  /// The number that the sink gave to it.
  void show_in(uint32_t shard) { view_ = shard; }
  /// Fills in what is in `row`; what it points at is good until the next call. Throws Hdf5Error
  /// where the file has not got the bytes.
  void find(uint64_t row, Hdf5File& file, FoundField& field);
  bool is_text() const;
  /// The bytes of a text or of bytes, read: for keys, of at most `most` bytes.
  std::string value(uint64_t row, Hdf5File& file, size_t most);

 private:
  enum class Kind : uint8_t { plain, number, trimmed, variable };

  void set_elements(const Hdf5Type& type);
  void set_variable(const Hdf5Type& type);
  void find_plain(uint64_t row, FoundField& field);
  void find_number(uint64_t row, FoundField& field);
  void find_trimmed(uint64_t row, FoundField& field);
  void find_variable(uint64_t row, Hdf5File& file, FoundField& field);

  std::string name_;
  Hdf5Rows& rows_;
  Hdf5GlobalHeap& heap_;
  const Hdf5Type& type_;
  uint64_t offset_;
  Kind kind_ = Kind::plain;
  FoundField shape_;             // what every row has in common
  uint64_t element_bytes_ = 0;   // of variable: bytes of one element of the sequence
  std::vector<Extent> extents_;  // of the current row
  std::optional<uint32_t> view_;
};

}  // namespace stoker
