// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/scan.h"
#include "format/arrow_columns.h"
#include "format/arrow_plan.h"
#include "os/file_system.h"

namespace stoker {

/// One field of the rows of a batch.
class ArrowLeaf {
 public:
  /// `around` are the structs that the column is a part of; all must outlive this.
  ArrowLeaf(ArrowPlan& plan, const ArrowColumn& column, std::vector<const ArrowColumn*> around,
            const ArrowDictionary* dictionary)
      : plan_(plan), column_(column), around_(std::move(around)), dictionary_(dictionary) {}

  const ArrowPlan& plan() const { return plan_; }
  /// Whether rows as many as the batch claims could have their values in what was read.
  bool backs(uint64_t rows) const;

  /// Says where the value of a row lies; false where it is null. What `found` points to is valid
  /// until the next call. Throws Error(corrupt) with the cause alone.
  bool find(uint64_t row, FoundField& found);
  /// The bytes of a value that is looked into; nothing where it is null.
  std::optional<std::string_view> text(uint64_t row);

 private:
  struct BytesAt {
    Extent extent;
    const std::byte* looked_at = nullptr;
  };
  /// Row of a column, or of the part of a dictionary that the row names.
  struct Place {
    const ArrowColumn* column;
    uint64_t row;
  };

  bool present(uint64_t row) const;
  Place resolve(uint64_t row) const;
  BytesAt bytes_at(const Place& place) const;
  static BytesAt view_at(const Place& place);
  void find_number(const Place& place, FoundField& found) const;
  void find_array(uint64_t row, FoundField& found);
  void find_strings(uint64_t row, FoundField& found);

  ArrowPlan& plan_;
  const ArrowColumn& column_;
  std::vector<const ArrowColumn*> around_;
  const ArrowDictionary* dictionary_;
  // What the rows have had so far of the elements, and of the bytes, that they share out.
  uint64_t elements_taken_ = 0, bytes_taken_ = 0;
  std::string scratch_;
};

}  // namespace stoker
