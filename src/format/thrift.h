// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace stoker {

// Thrift's compact protocol, as far as Parquet's metadata needs it. A struct is a run of fields,
// each a byte with its type and the distance of its number from the one before, until a zero byte.

enum class ThriftType : uint8_t {
  stop = 0,
  yes = 1,
  no = 2,
  byte = 3,
  int16 = 4,
  int32 = 5,
  int64 = 6,
  real = 7,
  binary = 8,
  list = 9,
  set = 10,
  map = 11,
  structure = 12,
  uuid = 13,
};

/// Integers with the sign in the lowest bit, so that small ones are short.
constexpr int64_t from_zigzag(uint64_t value) {
  return static_cast<int64_t>(value >> 1 ^ (0 - (value & 1)));
}

/// Bytes that values are taken off the front of. Throws Error(corrupt) with the cause alone.
class ThriftBytes {
 public:
  explicit ThriftBytes(Bytes bytes) : all_(bytes), rest_(bytes) {}
  size_t taken() const { return all_.size() - rest_.size(); }
  size_t left() const { return rest_.size(); }
  uint8_t byte();
  uint64_t varint();
  int64_t integer();
  Bytes take(uint64_t size);
  void skip(ThriftType type, unsigned depth);

 private:
  Bytes all_, rest_;
};

/// Walks through the fields of a struct; what is not read is passed over.
class ThriftStruct {
 public:
  explicit ThriftStruct(ThriftBytes& bytes, unsigned depth = 0) : bytes_(bytes), depth_(depth) {}
  /// False at the end.
  bool next();
  int id() const { return id_; }

  /// The value of the field; each throws Error(corrupt) where it is of another type.
  int64_t integer();
  int32_t int32();
  bool boolean();
  std::string_view text();
  ThriftStruct structure();
  /// Of a list of structs: how many follow, each to be read with element() to its end.
  uint64_t structures() { return list_of(ThriftType::structure); }
  ThriftStruct element() { return ThriftStruct(bytes_, depth_ + 1); }
  uint64_t texts() { return list_of(ThriftType::binary); }
  std::string_view element_text();

 private:
  void expect(ThriftType type);
  uint64_t list_of(ThriftType type);

  ThriftBytes& bytes_;
  unsigned depth_;
  int id_ = 0;
  ThriftType type_ = ThriftType::stop;
  bool pending_ = false;  // the field's value was not read
};

}  // namespace stoker
