// SPDX-License-Identifier: Apache-2.0
#include "load/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>

#include "base/error.h"
#include "base/text.h"

namespace stoker {
namespace {

bool has_fixed_shape(const Field& field) {
  return field.type == FieldType::array && field.dtype != DType::unknown && field.shape &&
         std::all_of(field.shape->begin(), field.shape->end(), [](int64_t n) { return n >= 0; });
}

bool is_real(DType dtype) {
  return dtype == DType::float16 || dtype == DType::float32 || dtype == DType::float64;
}

ColumnPlan plan_column(const Field& field, uint32_t number) {
  ColumnPlan plan;
  plan.name = field.name;
  plan.field = number;
  if (field.type == FieldType::number) {
    // What nobody has looked into yet may have digits behind the point; a label has none.
    const bool real =
        is_real(field.dtype) || (field.dtype == DType::unknown && field.name != kLabelField);
    plan.kind = ColumnPlan::Kind::numbers;
    plan.element = real ? "float64" : "int64";
  } else if (has_fixed_shape(field)) {
    plan.kind = ColumnPlan::Kind::arrays;
    plan.element = name_of(field.dtype);
    plan.shape.assign(field.shape->begin(), field.shape->end());
    plan.npy = field.encoding == Encoding::npy;
    plan.elements = field.encoding == Encoding::elements;
  }
  if (!plan.element.empty()) {
    plan.row_bytes = std::accumulate(plan.shape.begin(), plan.shape.end(),
                                     element_size(plan.element), std::multiplies<>());
  }
  return plan;
}

template <typename T>
void fill(std::byte* to, size_t elements, double value) {
  if constexpr (std::is_integral_v<T>) {
    // 2^63 itself is a double, and too large.
    const bool fits = value >= static_cast<double>(std::numeric_limits<T>::min()) &&
                      value < static_cast<double>(std::numeric_limits<T>::max()) + 1 &&
                      value == std::floor(value);
    if (!fits) {
      throw Error(ErrorKind::unsupported, fmt::format("pad: {} is no number of this field", value));
    }
  }
  std::fill_n(reinterpret_cast<T*>(to), elements, static_cast<T>(value));
}

void fill_with(std::byte* to, size_t elements, DType dtype, double value) {
  switch (dtype) {
    case DType::bool8:
      return fill<uint8_t>(to, elements, value != 0 ? 1 : 0);
    case DType::int8:
      return fill<int8_t>(to, elements, value);
    case DType::uint8:
      return fill<uint8_t>(to, elements, value);
    case DType::int16:
      return fill<int16_t>(to, elements, value);
    case DType::uint16:
      return fill<uint16_t>(to, elements, value);
    case DType::int32:
      return fill<int32_t>(to, elements, value);
    case DType::uint32:
      return fill<uint32_t>(to, elements, value);
    case DType::int64:
      return fill<int64_t>(to, elements, value);
    case DType::uint64:
      return fill<uint64_t>(to, elements, value);
    case DType::float32:
      return fill<float>(to, elements, value);
    case DType::float64:
      return fill<double>(to, elements, value);
    case DType::float16:
    case DType::unknown:
      break;
  }
  if (value != 0) throw Error(ErrorKind::unsupported, "float16 can only be padded with 0");
  std::memset(to, 0, elements * size_of(dtype));
}

/// Copies an array into the corner of a larger one. Both have C order.
void copy_into_corner(const std::byte* from, const std::vector<int64_t>& shape, std::byte* to,
                      const uint64_t* larger, size_t element) {
  if (shape.empty()) {
    std::memcpy(to, from, element);
    return;
  }
  if (shape.size() == 1) {
    std::memcpy(to, from, static_cast<size_t>(shape[0]) * element);
    return;
  }
  size_t inner_from = element;
  size_t inner_to = element;
  for (size_t i = 1; i < shape.size(); ++i) {
    inner_from *= static_cast<size_t>(shape[i]);
    inner_to *= larger[i];
  }
  const std::vector<int64_t> inner(shape.begin() + 1, shape.end());
  for (int64_t i = 0; i < shape[0]; ++i) {
    copy_into_corner(from + static_cast<size_t>(i) * inner_from, inner,
                     to + static_cast<size_t>(i) * inner_to, larger + 1, element);
  }
}

}  // namespace

size_t element_size(std::string_view element) {
  for (const DType dtype : {DType::bool8, DType::int8, DType::int16, DType::int32, DType::int64,
                            DType::uint8, DType::uint16, DType::uint32, DType::uint64,
                            DType::float16, DType::float32, DType::float64}) {
    if (name_of(dtype) == element) return size_of(dtype);
  }
  return 2;  // bfloat16, which NumPy has not
}

BatchColumn ColumnPlan::make(uint64_t rows, BatchMemory& memory) const {
  BatchColumn column;
  column.name = name;
  column.element = element;
  if (kind == Kind::values) {
    column.values.resize(rows);
    return column;
  }
  column.shape.push_back(rows);
  column.shape.insert(column.shape.end(), shape.begin(), shape.end());
  column.row_bytes = row_bytes;
  column.data = memory.take(rows * row_bytes);
  return column;
}

std::vector<ColumnPlan> plan_columns(const Sources& sources,
                                     const std::vector<std::string>& fields) {
  std::vector<ColumnPlan> columns;
  for (const std::string& name : fields) {
    const std::optional<uint32_t> number = sources.find(name);
    if (!number) {
      std::string known;
      for (const Field& field : sources.fields()) {
        known += (known.empty() ? "" : ", ") + printable(field.name);
      }
      throw Error(ErrorKind::usage, fmt::format("fields: the dataset has no field '{}', only: {}",
                                                printable(name), known));
    }
    columns.push_back(plan_column(sources.fields()[*number], *number));
  }
  return columns;
}

namespace {

/// A column of the true lengths of another's arrays, in each direction.
BatchColumn make_lengths(const std::string& name, size_t directions, uint64_t rows,
                         BatchMemory& memory) {
  ColumnPlan plan;
  plan.name = name + kLengthSuffix;
  plan.kind = ColumnPlan::Kind::numbers;
  plan.element = name_of(DType::int64);
  if (directions != 1) plan.shape = {directions};
  plan.row_bytes = directions * sizeof(int64_t);
  return plan.make(rows, memory);
}

/// The largest length in each direction, and what the arrays consist of. Throws where they differ
/// in more than that.
std::vector<uint64_t> largest_of(const std::vector<RowValue>& values, const std::string& name,
                                 DType& dtype) {
  std::optional<std::vector<uint64_t>> largest;
  for (const RowValue& value : values) {
    if (!value.present) continue;
    if (!largest) {
      largest.emplace(value.shape.size(), 0);
      dtype = value.dtype;
    }
    if (value.type != FieldType::array || value.dtype != dtype ||
        value.shape.size() != largest->size()) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("field '{}': only arrays of one type and number of dimensions can "
                              "be padded",
                              printable(name)));
    }
    for (size_t i = 0; i < largest->size(); ++i) {
      (*largest)[i] = std::max((*largest)[i], static_cast<uint64_t>(value.shape[i]));
    }
  }
  return largest.value_or(std::vector<uint64_t>{0});
}

}  // namespace

void pad_column(const ColumnPlan& plan, BatchMemory& memory, LoadedBatch& batch, size_t number) {
  const uint64_t rows = batch.rows;
  if (plan.kind == ColumnPlan::Kind::arrays) {  // all are alike
    const BatchColumn lengths = make_lengths(plan.name, plan.shape.size(), rows, memory);
    for (uint64_t row = 0; row < rows; ++row) {
      std::memcpy(lengths.row(row), plan.shape.data(), lengths.row_bytes);
    }
    batch.columns.push_back(lengths);
    return;
  }
  const std::vector<RowValue>& values = batch.columns[number].values;
  DType dtype = DType::uint8;
  const std::vector<uint64_t> largest = largest_of(values, plan.name, dtype);
  ColumnPlan padded = plan;
  padded.kind = ColumnPlan::Kind::arrays;
  padded.element = name_of(dtype);
  padded.shape = largest;
  const size_t element = size_of(dtype);
  padded.row_bytes = std::accumulate(largest.begin(), largest.end(), element, std::multiplies<>());
  BatchColumn column = padded.make(rows, memory);
  BatchColumn lengths = make_lengths(plan.name, largest.size(), rows, memory);
  for (uint64_t row = 0; row < rows; ++row) {
    fill_with(column.row(row), padded.row_bytes / element, dtype, plan.padding.value_or(0));
    std::memset(lengths.row(row), 0, lengths.row_bytes);
    if (!values[row].present) continue;
    copy_into_corner(values[row].bytes.data(), values[row].shape, column.row(row), largest.data(),
                     element);
    std::memcpy(lengths.row(row), values[row].shape.data(), lengths.row_bytes);
  }
  batch.columns[number] = std::move(column);
  batch.columns.push_back(std::move(lengths));
}

}  // namespace stoker
