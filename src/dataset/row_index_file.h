// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "os/kept_file.h"
#include "os/output_file.h"

namespace stoker {

// The row indexes of the photos that one segment describes lie in a file of their own beside it, so
// that they can be added later. Whoever reads photos can do without: the file may be missing, and a
// damaged one counts as missing. Each row index carries its own checksum, which the decoder
// compares. docs/formats/jpeg-row-index.md has the layout byte by byte.

/// What such a file says about all of its photos.
struct RowIndexFacts {
  static constexpr size_t kWays = 16;

  uint32_t field = 0;  // of the segment: that of the photos
  uint32_t every =
      0;  // MCUs between two entries of a row; 0: as half a percent of each photo holds
  uint64_t photo_bytes = 0;              // of all photos
  std::array<uint64_t, kWays> photos{};  // by the way they are decoded: values of DecodePath
};

/// Name of the file with the row indexes of the segment at `segment`.
std::string row_index_path(const std::string& segment);

/// Open for reading. Safe from many threads, also after a fork.
class RowIndexFile {
 public:
  /// Reads and verifies where each row index lies. Throws Error(not_found), or Error(corrupt) where
  /// it is damaged or belongs to another segment than the one with this checksum and so many
  /// samples.
  RowIndexFile(const std::string& path, uint32_t segment_crc, uint64_t samples);

  const RowIndexFacts& facts() const { return facts_; }
  /// Of all row indexes.
  uint64_t bytes() const { return ends_.empty() ? 0 : ends_.back(); }
  /// Bytes of one; 0 where the sample has none.
  uint64_t length(uint64_t sample) const { return ends_[sample] - begin(sample); }

  /// Fills `into` with those of the samples from `first` on, one after the other: as many bytes as
  /// they have. False where they cannot be read.
  bool read(uint64_t first, MutableBytes into) const;
  /// Reads all of it. Throws Error(corrupt).
  void verify_all() const;

 private:
  uint64_t begin(uint64_t sample) const { return sample == 0 ? 0 : ends_[sample - 1]; }
  [[noreturn]] void corrupt(const char* cause) const;

  KeptFile file_;
  RowIndexFacts facts_;
  uint64_t data_begin_ = 0;
  uint32_t data_crc_ = 0;
  std::vector<uint64_t> ends_;  // by sample, from data_begin_
};

/// Writes one, whole or not at all.
class RowIndexFileWriter {
 public:
  RowIndexFileWriter(const std::string& path, uint32_t segment_crc, uint64_t samples,
                     const Access& access);

  /// That of the next sample; empty where it has none.
  void add(Bytes row_index);
  /// All samples were added.
  void commit(const RowIndexFacts& facts);

 private:
  OutputFile file_;
  uint32_t segment_crc_;
  uint64_t samples_;
  std::vector<uint64_t> ends_;
  std::vector<std::byte> pending_;
  uint32_t data_crc_ = 0;
};

}  // namespace stoker
