// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataset/scan.h"
#include "format/parquet_encoding.h"
#include "format/parquet_metadata.h"
#include "format/parquet_plan.h"
#include "os/file_system.h"

namespace stoker {

enum class ParquetEncoding : uint8_t {
  plain = 0,
  plain_dictionary = 2,
  runs = 3,
  bit_packed = 4,
  delta_binary_packed = 5,
  delta_length_byte_array = 6,
  delta_byte_array = 7,
  runs_of_dictionary = 8,
  byte_stream_split = 9,
};

/// A page: levels, then values.
struct ParquetPage {
  bool dictionary = false;
  uint64_t values = 0;  // nulls included
  ParquetEncoding encoding = {};
  uint64_t begin = 0;  // of its header in the file
  std::vector<std::byte> decoded;
  Bytes repetition, definition;  // levels, as RunReader takes them
  Bytes data;                    // the values; within `decoded`
  /// What data[0] is the place of, so that values can be found without this page.
  Extent first;
};

/// Reads the pages of one column of a row group, one after the other.
class ParquetPages {
 public:
  ParquetPages(ReadableFile& file, const ParquetChunk& chunk, const ParquetPlan& plan,
               uint32_t shard, ScanSink& sink);

  /// False at the end. Throws Error(corrupt) or Error(unsupported) with the cause alone.
  /// Where the page is damaged but its length is not, `page.values` says how many are lost and the
  /// next call reads the one behind it; otherwise that is 0.
  bool next(ParquetPage& page);

 private:
  struct Header;
  Header read_header();
  void read_page(const Header& header, ParquetPage& page);
  void find_levels(Bytes& rest, ParquetPage& page) const;
  /// Undoes the codec of what lies there; `extent` becomes the place of the decoded bytes.
  void decode(Bytes stored, uint64_t offset, uint64_t decoded_length, std::vector<std::byte>& into,
              Extent& extent);
  std::vector<Codec> chain() const;

  ReadableFile& file_;
  const ParquetChunk& chunk_;
  bool has_repetition_, has_definition_;
  bool placed_;  // somebody wants to know where values lie
  uint32_t shard_;
  ScanSink& sink_;
  uint64_t at_;
  uint64_t values_ = 0;  // so far
};

/// Why a codec cannot be undone; empty where it can.
std::string refusal_of(ParquetCodec codec);

}  // namespace stoker
