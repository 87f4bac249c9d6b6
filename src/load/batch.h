// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dataset/schema.h"

namespace stoker {

/// Memory of batches, used again when nobody holds the batch any more: no page is touched for the
/// first time twice. Safe from many threads.
class BatchMemory : public std::enable_shared_from_this<BatchMemory> {
 public:
  /// Keeps up to `kept` pieces that nobody uses. Pinned where that is asked for and possible.
  BatchMemory(size_t kept, bool pinned) : kept_(kept), pinned_(pinned) {}
  ~BatchMemory();
  BatchMemory(const BatchMemory&) = delete;
  BatchMemory& operator=(const BatchMemory&) = delete;

  /// So many bytes at the beginning of a page, with anything in them. They stay as long as a copy
  /// of the pointer does, also without the BatchMemory.
  std::shared_ptr<std::byte> take(size_t bytes);

 private:
  struct Piece {
    std::byte* data = nullptr;
    size_t size = 0;
    bool pinned = false;
  };
  static void free(const Piece& piece);
  void give_back(Piece piece);

  const size_t kept_;
  const bool pinned_;
  std::mutex mutex_;
  std::vector<Piece> free_;
};

/// The value of a row that has a size of its own.
struct RowValue {
  bool present = false;
  FieldType type = FieldType::bytes;  // bytes, text, array or list
  std::vector<std::byte> bytes;
  DType dtype = DType::unknown;  // of an array
  std::vector<int64_t> shape;    // likewise
  std::vector<size_t> ends;      // of the elements of a list
};

/// One field of the samples of a batch.
struct BatchColumn {
  std::string name;
  std::string element;          // NumPy's name of its type, or bfloat16; empty: values
  std::vector<uint64_t> shape;  // rows come first
  size_t row_bytes = 0;
  std::shared_ptr<std::byte> data;
  std::vector<RowValue> values;  // by row, where they have sizes of their own

  std::byte* row(uint64_t number) const { return data.get() + number * row_bytes; }
};

/// One batch. Stays what it is as long as somebody holds it.
struct LoadedBatch {
  uint64_t rows = 0;
  std::vector<uint64_t> samples;  // by row
  std::vector<BatchColumn> columns;
  uint64_t position = 0;  // where the epoch stands behind it

  const BatchColumn* find(std::string_view name) const;
  /// Takes out the rows whose entry is 0; the order of the others stays.
  void keep_rows(const std::vector<uint8_t>& good);
};

}  // namespace stoker
