// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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

/// A page compressed by snappy, which is decoded in parts: samples of a page of 10 MB need not
/// decode all of it.
class SnappyPage {
 public:
  /// `cuts` are those of cut_snappy() for the stream that `block` is.
  SnappyPage(ScanSink& sink, const Block& block, std::vector<uint64_t> cuts);
  /// The place of decoded bytes.
  Extent place(uint64_t begin, uint64_t size);

 private:
  ScanSink& sink_;
  Block block_;
  std::vector<uint64_t> cuts_;
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> known_;  // first part, last + 1: number
};

/// Values that are stored as they are and are large: only their lengths and first bytes are read.
class UnreadValues {
 public:
  UnreadValues(ReadableFile& file, uint64_t offset, uint64_t size)
      : file_(file), offset_(offset), size_(size) {}

  uint64_t size() const { return size_; }
  /// The first of these bytes, up to kHead; valid until the next call.
  Bytes head(uint64_t begin, uint64_t size);
  static constexpr uint64_t kHead = 2048;

 private:
  ReadableFile& file_;
  uint64_t offset_, size_;
  std::vector<std::byte> window_;
  uint64_t window_begin_ = 0;
};

/// A page: levels, then values.
struct ParquetPage {
  bool dictionary = false;
  uint64_t values = 0;  // nulls included
  ParquetEncoding encoding = {};
  uint64_t begin = 0;  // of its header in the file
  std::vector<std::byte> decoded;
  Bytes repetition, definition;          // levels, as RunReader takes them
  Bytes data;                            // the values; within `decoded`
  std::unique_ptr<UnreadValues> unread;  // instead of them
  /// What data[0] is the place of, so that values can be found without this page.
  Extent first;
  std::unique_ptr<SnappyPage> parts;  // where it has some: `first.offset` counts decoded bytes

  /// Bytes of the values, of unread ones the first. Throws Error(corrupt) where there are fewer.
  Bytes bytes(uint64_t begin, uint64_t size) const;
  /// Where bytes of `data` lie.
  Extent place(uint64_t begin, uint64_t size) const;
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
  bool is_compressed(const Header& header) const;
  bool can_stay_unread(const Header& header) const;
  void read_levels(const Header& header, ParquetPage& page) const;
  void find_levels(Bytes& rest, ParquetPage& page) const;
  /// Undoes the codec of what lies there; the page learns the place of the decoded bytes.
  void decode(Bytes stored, uint64_t offset, uint64_t decoded_length, std::vector<std::byte>& into,
              ParquetPage& page);
  std::vector<Codec> chain() const;

  ReadableFile& file_;
  const ParquetChunk& chunk_;
  bool has_repetition_, has_definition_;
  bool placed_;  // somebody wants to know where values lie
  bool large_;   // and they may be large
  uint32_t shard_;
  ScanSink& sink_;
  uint64_t at_;
  uint64_t values_ = 0;  // so far
};

/// Why a codec cannot be undone; empty where it can.
std::string refusal_of(ParquetCodec codec);

}  // namespace stoker
