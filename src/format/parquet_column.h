// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/scan.h"
#include "format/parquet_page.h"
#include "format/parquet_plan.h"
#include "format/parquet_values.h"

namespace stoker {

/// One column of a row group, row by row.
class ParquetColumn {
 public:
  ParquetColumn(ReadableFile& file, ParquetPlan& plan, const ParquetChunk& chunk, uint32_t shard,
                ScanSink& sink);

  const ParquetPlan& plan() const { return plan_; }
  /// Nothing more comes.
  bool broken() const { return broken_; }

  /// Takes the next row; false where it is null or lost. Throws Error(corrupt) or
  /// Error(unsupported) with the cause alone: then the value of this row is lost, and that of those
  /// that the message speaks of. What `found` points to is valid until the next call.
  bool next(FoundField& found);

  /// The bytes of the value that next() has just found.
  std::string_view bytes() const { return as_text(bytes_); }
  /// Where in the file the page lies that the row is in.
  uint64_t offset() const { return page_.begin; }

 private:
  /// A level, and with it perhaps a value.
  struct Entry {
    unsigned repetition = 0, definition = 0;
  };

  bool next_page();
  bool next_flat(FoundField& found);
  bool next_list(FoundField& found);
  bool peek();
  void take_element();
  void set_stated_shape(std::vector<int64_t>& shape) const;
  void finish_list(FoundField& found, bool empty);
  void put_here(FoundField& found);
  void require_room() const;
  void number(Bytes stored, FoundField& found);
  void note_dimension(unsigned repetition);
  [[noreturn]] void give_up(const std::string& cause);

  ParquetPlan& plan_;
  ParquetPages pages_;
  ParquetPage page_;
  ParquetValues values_;
  // Bytes that may still go into the index, and those that the pages to come may add to them.
  uint64_t here_left_, here_to_come_;
  std::string last_here_;
  RunReader repetitions_, definitions_;
  uint64_t left_ = 0;  // in the page
  uint64_t lost_ = 0;  // rows of a damaged page
  bool broken_ = false;
  bool peeked_ = false;
  Entry entry_;
  Bytes bytes_;
  std::string scratch_;
  std::vector<Extent> pieces_;
  // Of the list that is being read:
  bool in_place_ = true;  // all its elements lie where pieces_ say
  bool has_null_ = false, ragged_ = false;
  std::vector<uint64_t> counts_;   // elements so far, per level
  std::vector<uint64_t> lengths_;  // of the lists of a level; 0 before the first is complete
};

}  // namespace stoker
