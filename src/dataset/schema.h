// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"

namespace stoker {

/// What a value is to whoever reads it.
enum class FieldType : uint8_t { bytes, text, number, array, list };

/// How stored bytes become that value; see value.h.
enum class Encoding : uint8_t {
  raw,           // the bytes themselves: bytes and text
  none,          // nothing is stored: the number lies in the index alone
  decimal,       // ASCII digits with white space around: number
  npy,           // a NumPy .npy file: array, or number when it has no dimensions
  tf_int64s,     // the body of a tf.train.Int64List: array, or number when it holds one
  tf_floats,     // the body of a tf.train.FloatList: likewise
  tf_strings,    // the body of a tf.train.BytesList: list
  elements,      // elements of Field::dtype in the shape of Field::shape, C order, little-endian:
                 // array, or number. The first dimension may be -1: it follows from the length
  elements_big,  // likewise, big-endian
  padded,        // text or bytes of a fixed width: NUL bytes at the end are padding
};

/// Which elements numbers and arrays are made of, by NumPy's name; `unknown` at structure depth.
enum class DType : uint8_t {
  unknown,
  bool8,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  float32,
  float64,
};

struct Field {
  std::string name;
  FieldType type = FieldType::bytes;
  Encoding encoding = Encoding::raw;
  DType dtype = DType::unknown;
  /// Of arrays, where known: -1 for a dimension that varies.
  std::optional<std::vector<int64_t>> shape;
  /// Endings of the files that it came from ("jpg", "seg.png"), in the order they were met. The
  /// index says per sample which one.
  std::vector<std::string> suffixes;
  /// In how many samples it is present.
  uint64_t present = 0;

  bool operator==(const Field&) const = default;
};

struct Schema {
  std::vector<Field> fields;
  /// Names of the classes that `label` counts, where they are known.
  std::vector<std::string> classes;

  std::optional<uint32_t> find(std::string_view name) const;
};

inline constexpr std::string_view kImageField = "image";
inline constexpr std::string_view kLabelField = "label";

/// How deep a dataset was looked into: where its fields lie, or every byte of them.
enum class Depth : uint8_t { structure, full };

std::string_view name_of(FieldType type);
std::string_view name_of(Encoding encoding);
std::string_view name_of(DType dtype);
std::string_view name_of(Depth depth);
size_t size_of(DType dtype);

/// Whether stored bytes mean nothing without the dtype and the shape of the field.
inline bool is_elements(Encoding encoding) {
  return encoding == Encoding::elements || encoding == Encoding::elements_big;
}
/// The bytes of an array of this shape; nothing where that does not fit 63 bits or a dimension is
/// not known.
std::optional<uint64_t> size_of_elements(DType dtype, std::span<const int64_t> shape);

/// The name of the file that a field is, or the member: KEY.SUFFIX, or the key alone.
inline std::string file_name(std::string key, std::string_view suffix) {
  return suffix.empty() ? key : std::move(key.append(1, '.').append(suffix));
}

/// Takes what `more` says about a field into `field`: counts add up, suffixes join, dimensions
/// and dtypes that differ become varying, number joins array. Returns false, and changes nothing,
/// where the two cannot be one field.
bool merge_field(Field& field, const Field& more);

Json to_json(const Field& field);
/// Throws Error(corrupt) with `where` in front.
Field field_from_json(const Json& json, std::string_view where);

/// Names are raw bytes and JSON is UTF-8: the form in which names stand in our JSON files.
std::string name_to_json(std::string_view name);
std::string name_from_json(std::string_view text);

}  // namespace stoker
