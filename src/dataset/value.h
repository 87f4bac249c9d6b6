// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "dataset/schema.h"

namespace stoker {

/// Moves, but does not copy: `data` may lie in `owned`.
struct Array {
  Array() = default;
  Array(Array&&) = default;
  Array& operator=(Array&&) = default;

  DType dtype = DType::unknown;
  std::vector<int64_t> shape;
  /// C order, little-endian, aligned; lies in the bytes that were decoded, or in `owned`.
  Bytes data;
  std::vector<std::byte> owned;
};

/// The value of one field. Bytes, text and list point into what they were decoded from.
using Value = std::variant<std::monostate,              // absent
                           Bytes, std::string_view,     // bytes, text
                           int64_t, double,             // number
                           Array, std::vector<Bytes>>;  // array, list

/// Turns the stored bytes of a field into its value. Throws Error(corrupt) with the cause alone;
/// the caller knows where the bytes come from.
Value decode_value(const Field& field, Bytes stored);

/// The number that an inline scalar stands for.
Value decode_scalar(const Field& field, uint64_t bits);

/// The bytes that stand for `value` in `encoding`. Throws Error(unsupported) where it cannot.
std::string encode_value(const Value& value, Encoding encoding);

/// The same as this field is stored; its elements have its dtype and shape.
std::string encode_value(const Value& value, const Field& as);

/// Those bytes where `value` points at them as they are to be stored.
std::optional<Bytes> encoded_already(const Value& value, const Field& as);

/// Turns the byte order of elements of this size.
void swap_bytes(MutableBytes data, size_t element);

/// The number that an array holds alone; absent where it holds none or several.
Value only_element(const Array& array);

/// Equal as far as every format can tell: bytes and text by their bytes, numbers by value,
/// arrays by dtype, shape and elements; a number equals the array that holds it alone.
bool equal_values(const Value& a, const Value& b);

}  // namespace stoker
