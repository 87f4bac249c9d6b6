// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "load/batch.h"
#include "load/sources.h"

namespace stoker {

/// How a field becomes a column of a batch.
struct ColumnPlan {
  enum class Kind : uint8_t {
    pictures,  // decoded
    numbers,   // int64 or float64
    arrays,    // all of one shape
    values,    // each of its own size
  };
  std::string name;
  Kind kind = Kind::values;
  uint32_t field = 0;           // of the sources
  std::string element;          // see BatchColumn
  std::vector<uint64_t> shape;  // of a row
  size_t row_bytes = 0;
  bool raw = false;               // pictures: arrays, which are not encoded
  bool npy = false;               // a row is stored as an .npy file: a header, then what is wanted
  bool elements = false;          // a row is stored as what is wanted
  std::optional<double> padding;  // values become one array, filled up with this, with lengths

  /// Column for so many rows.
  BatchColumn make(uint64_t rows, BatchMemory& memory) const;
};

/// Number of bytes of an element, by the name that ColumnPlan has for it.
size_t element_size(std::string_view element);

/// A column for each of these fields. Throws Error(usage) where there is no such field.
std::vector<ColumnPlan> plan_columns(const Sources& sources,
                                     const std::vector<std::string>& fields);

/// Behind the name of a field that is padded: the column of its true lengths.
inline constexpr const char* kLengthSuffix = "_length";

/// Makes one array of values of differing shapes, as large as the largest in each direction, and a
/// column of their true lengths. Throws Error(unsupported) where they have no common number of
/// dimensions or type, or the padding is no number of that type.
void pad_column(const ColumnPlan& plan, BatchMemory& memory, LoadedBatch& batch, size_t number);

}  // namespace stoker
