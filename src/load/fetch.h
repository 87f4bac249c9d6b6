// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "load/batch.h"
#include "load/columns.h"
#include "load/sample_cache.h"
#include "load/sources.h"

namespace stoker {

/// Samples of one dataset that were read together, and the memory in which they lie.
struct FetchedSamples {
  uint32_t source = 0;
  Batch batch;
  std::vector<ReadFailure> failures;
  std::unique_ptr<std::byte[]> memory, row_index_memory;
  std::vector<uint32_t> row_ends;  // in batch.items
  /// As batch.items: row indexes of photos that have one. Empty where nothing is decoded.
  std::vector<Bytes> row_indexes;

  std::span<const Item> items(uint32_t row) const {
    const uint32_t begin = row == 0 ? 0 : row_ends[row - 1];
    return {batch.items.data() + begin, row_ends[row] - begin};
  }
  Bytes row_index(const Item& item) const {
    if (row_indexes.empty()) return {};
    return row_indexes[static_cast<size_t>(&item - batch.items.data())];
  }
  /// What failed, of an item that did.
  const ReadFailure& failure(const Item& item) const;
};

struct FetchedRow {
  std::shared_ptr<const FetchedSamples> from;
  uint32_t row = 0;
};

/// The stage that reads samples. Safe from many threads.
class SampleFetcher {
 public:
  SampleFetcher(const Sources& sources, const std::vector<ColumnPlan>& columns, SampleCache* cache);

  /// Reads these samples, in whatever order they lie. Where a batch is given, arrays of fixed size
  /// go straight into its rows from `first_row` on.
  std::vector<FetchedRow> fetch(std::span<const uint64_t> samples, const LoadedBatch* into,
                                uint64_t first_row) const;

 private:
  void place(FetchedSamples& fetched, std::span<const uint32_t> rows, const LoadedBatch* into,
             uint64_t first_row) const;
  void read_row_indexes(FetchedSamples& fetched) const;
  uint32_t column_number(uint32_t source, const Item& item) const;
  void take_from_cache(FetchedSamples& fetched) const;
  void put_into_cache(const FetchedSamples& fetched) const;

  const Sources& sources_;
  const std::vector<ColumnPlan>& columns_;
  SampleCache* cache_;
  struct OwnFields {
    std::vector<uint32_t> wanted;             // of the source's schema
    std::vector<const ColumnPlan*> by_field;  // of the source's schema
    std::optional<uint32_t> pictures;         // the one that is decoded
  };
  std::vector<OwnFields> own_;  // by source
};

}  // namespace stoker
