// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace stoker {

/// Something in a FlatBuffer that is written: a table, a text, a vector of tables or of structs.
/// Described first, laid out by build().
class FlatBuilder {
 public:
  /// A table.
  FlatBuilder() = default;
  static FlatBuilder text(std::string_view text);
  static FlatBuilder tables(std::vector<FlatBuilder> tables);
  /// Structs of int64, `size` bytes each.
  static FlatBuilder structs(Bytes elements, size_t size);

  template <typename T>
  FlatBuilder& number(unsigned field, T value) {
    slots_.push_back({field, std::string(as_text(std::as_bytes(std::span(&value, 1)))), 0});
    return *this;
  }
  FlatBuilder& child(unsigned field, FlatBuilder child);

  /// The buffer whose root this table is.
  std::string build() const;

 private:
  enum class Kind : uint8_t { table, text, tables, structs };
  struct Slot {
    unsigned field;
    std::string bytes;  // of a number; empty: a child
    size_t child;
  };

  size_t append(std::string& to) const;
  size_t append_table(std::string& to) const;

  Kind kind_ = Kind::table;
  std::vector<Slot> slots_;
  std::vector<FlatBuilder> children_;
  std::string bytes_;
  size_t element_size_ = 1;
};

}  // namespace stoker
