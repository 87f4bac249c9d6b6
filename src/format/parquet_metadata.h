// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "dataset/schema.h"
#include "os/file_system.h"

namespace stoker {

inline constexpr std::string_view kParquetMagic = "PAR1";

/// What values are stored as; numbers as in parquet.thrift, like those of all enumerations here.
enum class ParquetType : uint8_t {
  boolean = 0,
  int32 = 1,
  int64 = 2,
  int96 = 3,
  real32 = 4,
  real64 = 5,
  byte_array = 6,
  fixed_byte_array = 7,
};

enum class ParquetCodec : uint8_t {
  none = 0,
  snappy = 1,
  gzip = 2,
  lzo = 3,
  brotli = 4,
  lz4_hadoop = 5,
  zstd = 6,
  lz4_raw = 7,
};

/// A node of the schema's tree.
struct ParquetNode {
  std::string_view name;
  std::optional<ParquetType> type;  // none: a group
  uint32_t width = 0;               // of a fixed_byte_array
  enum class Repetition : uint8_t { required, optional, repeated } repetition = {};
  bool list = false, map = false;  // what a group stands for
  bool text = false;
  bool unreadable = false;  // a decimal or interval
  DType dtype = DType::unknown;
  uint32_t leaf = 0;  // of a leaf: which column of a row group
  std::vector<ParquetNode> children;
};

/// One column of a row group.
struct ParquetChunk {
  ParquetType type = {};
  ParquetCodec codec = {};
  uint64_t values = 0;
  uint64_t begin = 0, end = 0;  // of its pages in the file
  bool flags_lie = false;       // pages that say they are not compressed are
  std::string refusal;          // why it cannot be read; empty where it can
};

struct ParquetRowGroup {
  uint64_t rows = 0;
  uint64_t bytes = 0;
  std::vector<ParquetChunk> chunks;
};

struct ParquetFile {
  std::vector<std::byte> footer;  // what the views below point into
  ParquetNode root;
  uint32_t leaves = 0;
  uint64_t rows = 0;
  std::vector<ParquetRowGroup> groups;
  std::vector<std::pair<std::string_view, std::string_view>> metadata;

  std::string_view metadata_of(std::string_view key) const;
};

/// Reads the footer. Throws Error(corrupt) or Error(unsupported) with the cause alone.
ParquetFile read_parquet_footer(ReadableFile& file);

}  // namespace stoker
