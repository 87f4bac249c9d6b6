// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataset/extent.h"
#include "format/hdf5_file.h"
#include "format/hdf5_type.h"

namespace stoker {

/// One filter of a pipeline, as the file has it.
struct Hdf5Filter {
  uint16_t id = 0;
  std::string name;
  std::vector<uint32_t> parameters;
};

/// How the chunks of a dataset are found.
enum class Hdf5ChunkIndex : uint8_t { btree1, single, implicit, fixed_array, extensible, btree2 };

struct Hdf5Chunks {
  std::vector<uint64_t> dims;  // of a chunk
  Hdf5ChunkIndex index = Hdf5ChunkIndex::btree1;
  uint64_t address = kNowhere;  // of the index; of the chunk where it is the only one
  bool plain_edges = false;     // chunks that leave the dataset are stored without filters
  uint64_t single_length = 0;   // of the only chunk, where it is filtered
  uint32_t single_mask = 0;
};

/// A dataset as its header describes it.
struct Hdf5Dataset {
  uint64_t address = 0;  // of its header
  Hdf5Type type;
  Hdf5Space space;
  enum class Layout : uint8_t { compact, contiguous, chunked } layout = Layout::contiguous;
  /// Of compact and contiguous data; kNowhere where none was written.
  uint64_t data = kNowhere;
  uint64_t data_length = 0;
  Hdf5Chunks chunks;
  std::vector<Hdf5Filter> filters;  // in the order of encoding
  std::vector<std::byte> fill;      // of one element; empty: zeros

  /// Elements of one sample, and their bytes: the dimensions behind the first.
  uint64_t row_elements = 0, row_bytes = 0;
};

/// Whether the object has data at all; it is a group, or a type with a name, otherwise.
bool is_hdf5_dataset(const Hdf5Messages& messages);

/// Throws Hdf5Error: corrupt where the header is damaged, unsupported where its data lie in other
/// files or in a layout of the future.
Hdf5Dataset parse_hdf5_dataset(Hdf5File& file, uint64_t address, const Hdf5Messages& messages);

/// The codecs that undo the filters, those left out whose bit is set in `mask`. Throws
/// Error(unsupported) with the filter's name for one that is not known here.
std::vector<Codec> hdf5_codecs(const Hdf5Dataset& dataset, uint32_t mask);

}  // namespace stoker
