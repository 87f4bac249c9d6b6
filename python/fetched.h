// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "dataset/reader.h"

namespace stoker::python {

/// Frees what array_memory() has made.
void free_array_memory(void* memory) noexcept;

struct FreeMemory {
  void operator()(std::byte* memory) const { free_array_memory(memory); }
};

/// Memory of one array, aligned to the lines of the cache, which suits every vector instruction.
using ArrayMemory = std::unique_ptr<std::byte[], FreeMemory>;

/// Samples on their way to Python. Bytes and arrays are read straight into the memory that Python
/// gets to see: it is taken while the GIL is held, filled without it, and handed out only when the
/// field has arrived whole.
class Fetched {
 public:
  /// REQUIRES: the GIL, also for the destructor. `names` has the name of each field of the schema;
  /// both it and `reader` outlive this.
  Fetched(const Reader& reader, const std::vector<nanobind::object>& names, Batch batch);

  /// Needs no GIL.
  void fetch();

  size_t rows() const { return batch_.samples.size(); }
  /// The fields of one sample by name. Throws what went wrong with it. REQUIRES: the GIL, and that
  /// the row is taken once.
  nanobind::dict take(size_t row);

 private:
  /// Takes the memory that the items are read into.
  void allocate();
  [[noreturn]] void raise_no_memory() const;
  nanobind::object take_value(size_t number);
  nanobind::object array(Array&& array, ArrayMemory buffer);

  const Reader& reader_;
  const std::vector<nanobind::object>& names_;
  Batch batch_;
  std::vector<size_t> row_begins_;       // into batch_.items; one more than there are rows
  std::vector<nanobind::object> bytes_;  // per item of type bytes: what it is read into
  std::vector<ArrayMemory> buffers_;     // per item of type array: likewise
  std::unique_ptr<std::byte[]> scratch_;
  std::vector<ReadFailure> failures_;
};

}  // namespace stoker::python
