// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/arrow_schema.h"
#include "format/columnar.h"
#include "format/hugging_face.h"

namespace stoker {

/// What is made of a column, or of a part of a nested one.
enum class ArrowUse : uint8_t {
  skip,       // nothing
  number,     // a number per row, which goes into the index
  bytes,      // bytes or text
  array,      // lists of numbers, also nested
  strings,    // lists of bytes or text
  structure,  // its children are fields
  key,        // bytes or text that is the key
};

struct ArrowPlan {
  const ArrowField* field = nullptr;
  ArrowUse use = ArrowUse::skip;
  std::string name;                   // of the field that it becomes
  bool image = false;                 // its ending is wanted
  bool look = false;                  // somebody looks into its bytes
  bool made = false;                  // a path that is no field
  Encoding encoding = Encoding::raw;  // of its bytes
  std::vector<int64_t> shape;         // of arrays that say it themselves
  std::vector<int64_t> stated;        // of arrays of one shape, where it is said
  std::vector<int64_t> inner;         // of nested lists: dimensions behind the first, once known
  std::vector<ArrowPlan> children;    // as many as the field has, or none
};

/// Columns of a struct become fields NAME.CHILD; `bytes` of a struct of `bytes` and `path`, as
/// `datasets` stores images and sounds, becomes NAME. The column `__key__` is the key.
std::vector<ArrowPlan> plan_arrow_columns(const ArrowSchema& schema, const ColumnNames& names,
                                          std::vector<RefusedColumn>& refused);

/// The dimensions of lists of numbers by their types; -1 where they vary. Those of a
/// fixed_shape_tensor, whose storage has but one. Empty for other columns.
std::vector<int64_t> shape_by_type(const ArrowField& field);

/// How our own files say that a binary column holds something else: npy or tf_strings.
inline constexpr std::string_view kArrowEncodingKey = "stoker:encoding";
/// How they say that the paths of images come from the keys, and are no field of the dataset.
inline constexpr std::string_view kArrowPathKey = "stoker:path";
inline constexpr std::string_view kArrowPathMade = "made";

}  // namespace stoker
