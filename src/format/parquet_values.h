// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataset/extent.h"
#include "format/parquet_encoding.h"
#include "format/parquet_metadata.h"
#include "format/parquet_page.h"

namespace stoker {

/// One value, and where it lies.
struct ParquetValue {
  Bytes bytes;    // valid until the next one is read
  Extent extent;  // Container::here: nowhere as it is
};

/// Reads the values of a column's pages, whatever their encoding. Throws Error(corrupt) or
/// Error(unsupported) with the cause alone.
class ParquetValues {
 public:
  explicit ParquetValues(const ParquetNode& node);

  /// Keeps a dictionary for the pages behind it.
  void take_dictionary(ParquetPage page);
  /// The values of `page`, which must outlive the reading of them.
  void begin(const ParquetPage& page);
  /// The next one: a number as it is stored, bytes without their length.
  ParquetValue next();

 private:
  ParquetValue in_page(const ParquetPage& page, uint64_t begin, uint64_t size) const;
  ParquetValue plain();
  ParquetValue from_dictionary();
  ParquetValue split();
  ParquetValue delta();
  ParquetValue delta_bytes();
  ParquetValue made(Bytes bytes) const;

  const ParquetNode& node_;
  size_t width_;  // of a value in bytes; 0 where it varies
  bool has_dictionary_ = false;
  ParquetPage dictionary_;
  std::vector<std::pair<uint32_t, uint32_t>> entries_;  // of a dictionary: begin and length
  const ParquetPage* page_ = nullptr;
  uint64_t at_ = 0;  // in the data: bytes, of booleans bits
  RunReader runs_;
  DeltaReader deltas_, prefixes_;
  uint64_t split_count_ = 0;
  std::string last_;  // value that is not stored as it is
};

}  // namespace stoker
