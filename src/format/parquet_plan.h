// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/columnar.h"
#include "format/hugging_face.h"
#include "format/parquet_metadata.h"

namespace stoker {

/// What is made of a column.
enum class ParquetUse : uint8_t {
  number,   // a number per row, which goes into the index
  bytes,    // bytes or text
  array,    // lists of numbers, also nested
  strings,  // lists of bytes or text
  key,      // bytes or text that is the key
};

/// A leaf of the schema that becomes a field.
struct ParquetPlan {
  const ParquetNode* node = nullptr;
  ParquetUse use = {};
  std::string name;
  /// A value is there where its level is the highest; lists end where the repetition falls.
  unsigned most_definition = 0, most_repetition = 0;
  /// The level from which on the outermost list has elements; one below it is empty.
  unsigned element_definition = 0;
  bool image = false;
  bool path_follows = false;    // of an image: the next plan is its path
  std::vector<int64_t> stated;  // of arrays of one shape, where it is said
  std::vector<int64_t> inner;   // of nested lists: dimensions behind the first, once known
};

/// The same names as those of an Arrow file; see plan_arrow_columns().
std::vector<ParquetPlan> plan_parquet_columns(const ParquetFile& file, const ColumnNames& names,
                                              std::vector<RefusedColumn>& refused);

}  // namespace stoker
