// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace stoker {

// FlatBuffers, as far as Arrow's metadata needs them. A table begins with the distance back to its
// vtable, which says where in the table each field lies; whatever refers to something else holds
// the distance forward to it. Every access here is compared with the buffer's size, so nothing has
// to be verified before. Distances may lead to the same place several times: who walks a tree
// bounds its depth and the number of its nodes.

/// Throws Error(corrupt) with the cause alone; so does everything below.
[[noreturn]] void corrupt_flatbuffer(const char* cause);

class FlatTable;

/// A vector of tables or of structs.
class FlatVector {
 public:
  FlatVector() = default;
  size_t size() const { return count_; }
  /// REQUIRES: a vector of tables, i < size().
  FlatTable table(size_t i) const;
  /// Structs: element i. REQUIRES: i < size().
  const std::byte* element(size_t i) const { return buffer_.data() + begin_ + i * element_size_; }

 private:
  friend class FlatTable;
  FlatVector(Bytes buffer, size_t begin, size_t count, size_t element_size)
      : buffer_(buffer), begin_(begin), count_(count), element_size_(element_size) {}
  Bytes buffer_;
  size_t begin_ = 0, count_ = 0, element_size_ = 0;
};

class FlatTable {
 public:
  /// Not there: every field has its default.
  FlatTable() = default;
  /// The table that a buffer is.
  static FlatTable root(Bytes buffer);

  bool there() const { return !buffer_.empty(); }
  size_t buffer_size() const { return buffer_.size(); }

  template <typename T>
  T number(unsigned field, T fallback = T()) const {
    const size_t at = place(field, sizeof(T));
    return at == 0 ? fallback : load<T>(buffer_.data() + at);
  }
  FlatTable table(unsigned field) const;
  std::string_view text(unsigned field) const;
  FlatVector tables(unsigned field) const { return vector(field, sizeof(uint32_t)); }
  FlatVector structs(unsigned field, size_t size) const { return vector(field, size); }

 private:
  friend class FlatVector;
  FlatTable(Bytes buffer, size_t at);
  /// Where the field lies in the buffer; 0 where the table does not have it.
  size_t place(unsigned field, size_t size) const;
  FlatVector vector(unsigned field, size_t element_size) const;

  Bytes buffer_;
  size_t at_ = 0;
  size_t vtable_ = 0;
  uint16_t vtable_size_ = 0, table_size_ = 0;
};

}  // namespace stoker
