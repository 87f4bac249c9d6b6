// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/extent.h"
#include "dataset/manifest.h"
#include "dataset/scan.h"
#include "dataset/schema.h"

namespace stoker {

/// Collects the samples of one segment in memory and writes it. Callers bound how many they add.
class SegmentWriter {
 public:
  /// Samples after which a caller should begin a new segment.
  static constexpr uint64_t kMaxSamples = uint64_t{1} << 16;
  /// Bytes of a large shard after which it should.
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

  uint32_t add_shard(const Shard& shard);
  uint32_t add_block(const Block& block);
  uint32_t add_codecs(std::vector<Codec> chain);
  void add_fault(Fault fault) { faults_.push_back(std::move(fault)); }
  /// Returns nothing, or why a field does not fit what earlier samples of the segment have under
  /// the same name; the sample is then kept without that field.
  std::vector<std::string> add_sample(std::string_view key, std::span<const FoundField> fields);

  /// Says for the sample added last that its file states the CRC-32C of these bytes.
  void set_stated(const Extent& bytes);

  uint64_t samples() const { return key_ends_.size(); }
  const std::vector<Fault>& faults() const { return faults_; }
  uint64_t bytes() const { return bytes_; }
  const std::vector<Field>& fields() const { return fields_; }
  std::vector<Shard>& shards() { return shards_; }
  const std::vector<Shard>& shards() const { return shards_; }
  std::string_view key(uint64_t sample) const;
  /// Path of a field that is a file of its own.
  std::string file_path(uint64_t sample, uint32_t field) const;
  const std::vector<Block>& blocks() const { return blocks_; }
  const std::vector<Codec>& codec_chain(uint32_t number) const { return codec_chains_[number]; }
  /// The pieces of an extent in several.
  std::span<const Extent> pieces(const Extent& extent) const;
  std::string_view here_bytes(const Extent& extent) const {
    return std::string_view(here_).substr(extent.offset, extent.length);
  }

  /// What a full pass over the bytes adds to a structure scan.
  Extent& extent(uint64_t sample, uint32_t field) { return columns_[field].extents[sample]; }
  const Extent& extent(uint64_t sample, uint32_t field) const {
    return columns_[field].extents[sample];
  }
  bool has_extents(uint32_t field) const { return !columns_[field].extents.empty(); }
  bool present(uint64_t sample, uint32_t field) const {
    return columns_[field].present[sample] != 0;
  }
  /// Bits of a number that lies in the index alone.
  uint64_t scalar(uint64_t sample, uint32_t field) const { return columns_[field].scalars[sample]; }
  uint16_t suffix(uint64_t sample, uint32_t field) const;
  void set_integer(uint64_t sample, uint32_t field, int64_t value);
  void set_real(uint64_t sample, uint32_t field, double value);
  /// Takes dtype and shape of one value of an array into the field's.
  void refine_array(uint32_t field, DType dtype, const std::vector<int64_t>& shape);

  /// Writes the segment to `directory` as STEM.CRC.seg (whole or not at all), CRC being that of its
  /// header: another content has another name, so the index in force is never disturbed. Returns
  /// what a manifest says about it.
  SegmentEntry write(const std::string& directory, const std::string& stem, Depth depth,
                     const Access& access) const;

 private:
  struct Column {
    std::vector<Extent> extents;
    std::vector<uint64_t> scalars;    // of numbers
    std::vector<uint8_t> has_scalar;  // of numbers
    std::vector<uint16_t> suffixes;
    std::vector<uint8_t> present;
    bool shape_seen = false;
  };

  /// Of a field that was found.
  struct Place {
    uint32_t field;
    uint16_t suffix;
  };

  Extent add_pieces(std::span<const Extent> pieces);
  std::string meta() const;
  Place place_of(const FoundField& found, uint32_t guess, std::string& conflict);
  void pad(uint32_t field, uint64_t samples);
  void set_scalar(uint64_t sample, uint32_t field, uint64_t bits);

  std::vector<Field> fields_;
  std::vector<Column> columns_;
  std::vector<Shard> shards_;
  std::vector<Block> blocks_;
  std::vector<std::vector<Codec>> codec_chains_;
  std::vector<Extent> pieces_;
  std::vector<Extent> stated_;  // by sample; empty where no file states any
  std::string keys_;
  std::vector<uint64_t> key_ends_;
  std::string here_;
  std::vector<Fault> faults_;
  uint64_t bytes_ = 0;
};

}  // namespace stoker
