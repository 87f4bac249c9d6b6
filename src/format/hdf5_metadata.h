// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataset/schema.h"

namespace stoker {

// What an HDF5 file consists of besides data, as the first version of the format has it: every
// library reads that.

struct Hdf5OutChunk {
  uint64_t row = 0;
  uint64_t address = 0;
  uint32_t length = 0;
};

/// A dataset whose chunks are written.
struct Hdf5OutDataset {
  std::string name;
  std::string type;  // a datatype message
  uint32_t element_size = 0;
  std::vector<uint64_t> dims;  // of the samples: the first dimension is not among them
  uint64_t chunk_rows = 1;
  bool deflated = false;
  std::vector<Hdf5OutChunk> chunks;
  std::optional<uint64_t> rows = {};  // where it has others than the samples
};

inline constexpr size_t kHdf5Superblock = 96;

/// The end of a file with these datasets of `rows` rows, which are sorted by name: to be
/// appended at offset `address`. `superblock` is what the file then begins with.
std::string hdf5_metadata(std::span<const Hdf5OutDataset> datasets, uint64_t rows, uint64_t address,
                          std::string& superblock);

/// Datatype messages. `names` are those of classes that a number counts.
std::string hdf5_number_type(DType dtype, bool big_endian);
std::string hdf5_class_type(DType dtype, std::span<const std::string> names);
std::string hdf5_sequence_type(DType dtype, bool big_endian);
std::string hdf5_text_type();
/// Text of fixed width, filled up with NUL.
std::string hdf5_padded_type(uint32_t width);

}  // namespace stoker
