// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/format.h"

namespace stoker {

// Files that are arrays whose first dimension counts samples: .npy, stored .npz, MNIST's idx, the
// binary batches of CIFAR-10.

/// The field under which pack keeps the keys of samples.
inline constexpr std::string_view kNpyKeys = "__key__";

/// What of a file's rows is one field.
struct RowArray {
  std::string field;
  DType dtype = DType::unknown;  // unknown: text of the width `length`
  bool big_endian = false;
  std::vector<int64_t> shape;  // of one row
  uint64_t rows = 0;           // as the file claims
  uint64_t offset = 0;         // of the first row
  uint64_t length = 0;         // of a row
  uint64_t stride = 0;         // from one row to the next
};

/// A file, as its first bytes describe it.
struct ArrayFile {
  std::string path;   // relative
  std::string group;  // files of one group belong together; often empty
  FileInfo info;
  Compression compression = Compression::none;
  std::vector<RowArray> arrays;
  std::vector<StatedChecksum> stated;  // of an archive's members; without the shard's number
  uint64_t expected_size = 0;          // of the bytes when not compressed
  bool batch = false;                  // a batch of CIFAR-10
  bool archive = false;                // an .npz
  std::vector<Fault> faults;           // arrays in it that cannot be read in place
};

/// Group and field that the name of a file stands for.
struct ArrayName {
  std::string group, field;
};
ArrayName array_name(std::string_view file_name);

/// Nothing where the file is something else. Throws Error(corrupt) or Error(unsupported), with the
/// cause alone, where it is one of these but damaged or not understood.
std::optional<ArrayFile> read_array_file(const Source& source, const std::string& path);

}  // namespace stoker
