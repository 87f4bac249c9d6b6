// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "dataset/scan.h"
#include "format/arrow_ipc.h"
#include "format/arrow_plan.h"
#include "os/file_system.h"

namespace stoker {

/// Where the bytes of a buffer lie once they are decoded.
struct ArrowPlace {
  Container container = Container::absent;
  uint32_t number = 0;
  uint64_t offset = 0, length = 0;

  /// REQUIRES: lies within.
  Extent extent(uint64_t begin, uint64_t size) const {
    return {container, number, offset + begin, size, 0};
  }
};

/// One column of a batch, or a part of a nested one: what it takes to say where its values lie.
struct ArrowColumn {
  const ArrowField* field = nullptr;
  uint64_t rows = 0;
  std::vector<std::byte> validity;   // a bit per row; empty where none is null
  std::vector<std::byte> entries;    // per row: number, offset, view or index into the dictionary
  ArrowPlace data;                   // of bytes, or of the elements of arrays
  std::vector<std::byte> looked_at;  // the same, where somebody looks into them
  std::vector<ArrowPlace> views;     // of bytes that views refer to
  std::vector<std::vector<std::byte>> views_looked_at;
  std::vector<ArrowColumn> children;

  bool valid(uint64_t row) const {
    return validity.empty() || (validity[row / 8] & std::byte{1} << (row % 8)) != std::byte{0};
  }
};

/// A dictionary: parts that follow each other.
struct ArrowDictionary {
  std::vector<ArrowColumn> parts;
  uint64_t rows = 0;
};
using ArrowDictionaries = std::map<int64_t, ArrowDictionary>;

/// Reads the columns of one batch from its buffers.
class ArrowBody {
 public:
  /// `shard` is what sink.shard() returned.
  ArrowBody(ReadableFile& file, const ArrowBatch& batch, uint32_t shard, ScanSink& sink)
      : file_(file), batch_(batch), shard_(shard), sink_(sink) {}

  /// The next column. Throws Error(corrupt) with the cause alone; the one behind it can be read
  /// all the same.
  ArrowColumn column(const ArrowPlan& plan, uint64_t rows);
  void skip(const ArrowField& field);
  /// The values of a dictionary: the only column of its batch.
  ArrowColumn dictionary(const ArrowPlan& plan);

 private:
  ArrowNode next_node();
  ArrowRange next_buffer();
  uint64_t next_variadic();
  ArrowColumn read_column(const ArrowPlan& plan, uint64_t rows, bool decode_dictionary);
  void read_values(const ArrowPlan& plan, ArrowColumn& column);
  void read_views(const ArrowPlan& plan, ArrowColumn& column);
  ArrowColumn read_list(const ArrowField& field, uint64_t rows, bool strings);
  std::vector<std::byte> validity(const ArrowNode& node);
  std::vector<std::byte> offsets(const ArrowField& field, uint64_t rows);
  /// The decoded bytes of a buffer, of which `needed` are looked at.
  std::vector<std::byte> read(const ArrowRange& range, uint64_t needed);
  ArrowPlace place(const ArrowRange& range);
  std::vector<std::byte> look_into(const ArrowRange& range);

  struct Stored {
    ArrowRange range;
    uint64_t decoded = 0;
    bool compressed = false;
  };
  Stored stored(const ArrowRange& range);
  std::vector<Codec> chain() const;

  ReadableFile& file_;
  const ArrowBatch& batch_;
  uint32_t shard_;
  ScanSink& sink_;
  size_t node_ = 0, buffer_ = 0, variadic_ = 0;
};

}  // namespace stoker
