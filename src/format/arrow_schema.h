// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "dataset/schema.h"
#include "format/flatbuffer.h"

namespace stoker {

/// What the buffers of a column are; the numbers are those of Arrow's union `Type`.
enum class ArrowType : uint8_t {
  none = 0,
  null = 1,
  integer = 2,
  floating_point = 3,
  binary = 4,
  utf8 = 5,
  boolean = 6,
  decimal = 7,
  date = 8,
  time = 9,
  timestamp = 10,
  interval = 11,
  list = 12,
  structure = 13,
  sum = 14,  // Arrow calls it Union
  fixed_size_binary = 15,
  fixed_size_list = 16,
  map = 17,
  duration = 18,
  large_binary = 19,
  large_utf8 = 20,
  large_list = 21,
  run_end_encoded = 22,
  binary_view = 23,
  utf8_view = 24,
  list_view = 25,
  large_list_view = 26,
};
std::string_view name_of(ArrowType type);

/// A column, or a part of a nested one.
struct ArrowField {
  std::string_view name;
  ArrowType type = ArrowType::none;
  /// Of numbers. Dates, times and durations are the integers that they are stored as.
  DType dtype = DType::unknown;
  /// Bytes of a fixed_size_binary, elements of a fixed_size_list.
  uint32_t width = 0;
  bool dense_union = false;
  /// Of a dictionary-encoded column: which dictionary, and what its indices are.
  std::optional<int64_t> dictionary;
  DType index = DType::unknown;
  FlatVector metadata;
  std::vector<ArrowField> children;

  /// Empty where there is none of that name.
  std::string_view metadata_of(std::string_view key) const;
  bool is_text() const {
    return type == ArrowType::utf8 || type == ArrowType::large_utf8 || type == ArrowType::utf8_view;
  }
  bool is_bytes() const {
    return is_text() || type == ArrowType::binary || type == ArrowType::large_binary ||
           type == ArrowType::binary_view || type == ArrowType::fixed_size_binary;
  }
  bool is_number() const { return dtype != DType::unknown; }
};

struct ArrowSchema {
  std::vector<ArrowField> fields;
  FlatVector metadata;
  bool big_endian = false;  // the numbers of its columns
  std::string_view metadata_of(std::string_view key) const;
};

/// Points into the buffer of the table. Throws Error(corrupt) or Error(unsupported) with the cause
/// alone.
ArrowSchema parse_arrow_schema(const FlatTable& table);

}  // namespace stoker
