// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/extent.h"
#include "dataset/paged_file.h"
#include "dataset/scan.h"
#include "dataset/schema.h"

namespace stoker {

// A segment describes the samples of one shard, of a part of a large one, or of some 10,000 small
// files. It may be read while another process replaces it, and its disk may lie: so it is written
// once, renamed into place, never changed, and no byte of it is used before its page's checksum
// was found right. docs/formats/index.md has the layout byte by byte.

/// Kinds of tables. Values are on disk: never renumber.
enum class TableKind : uint16_t {
  meta = 1,        // JSON: fields, codec chains, faults
  shards = 2,      // ShardRecord
  paths = 3,       // bytes of shard paths
  keys = 4,        // bytes of keys, one after the other
  key_ends = 5,    // u64 per sample: where its key ends in `keys`
  key_hashes = 6,  // u64 per sample: hash64 of keys, sorted
  key_order = 7,   // u32 per sample: whose key that hash is
  extents = 8,     // ExtentRecord per sample; one table per field that is stored
  scalars = 9,     // 8 bytes per sample: int64, or double; one table per field held inline
  suffixes = 10,   // u16 per sample, where a field has several suffixes
  present = 11,    // u8 per sample, where a field with encoding none is absent somewhere
  pieces = 12,     // ExtentRecord: extents of fields that lie in several
  blocks = 13,     // BlockRecord
  here = 14,       // bytes of values that lie in no shard
  runs = 15,       // RunRecord: instead of `extents`, where they are equally spaced
  extras = 16,     // reserved: per-sample extras under a name, in files beside the segment
  crcs = 17,       // u32 per sample: with `runs`, at full depth, the checksums of the extents
  views = 18,      // bytes of views, one after the other
  view_ends = 19,  // u64 per view: where it ends in `views`
  stated = 20,     // ExtentRecord per sample: bytes whose CRC-32C the file itself states
};

/// What a segment says about one field of one sample.
struct Located {
  bool present = false;
  Extent extent;
  uint16_t suffix = 0;  // index into Field::suffixes of this segment
  bool has_scalar = false;
  uint64_t scalar = 0;  // bits of an int64 or a double
};

/// A segment open for reading. Opening reads the header alone. Safe from many threads, also after
/// a fork. Whatever is wrong with it is Error(corrupt), which says to run `stoker index`.
class Segment {
 public:
  explicit Segment(const std::string& path);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  const std::string& path() const { return path_; }
  uint64_t samples() const { return header_.samples; }
  Depth depth() const { return header_.depth; }
  uint32_t header_crc() const { return header_.crc; }
  int64_t written_ns() const { return written_ns_; }  // of the file that was opened

  /// Fields in the order of this segment; read on first use.
  const std::vector<Field>& fields() const { return meta().fields; }
  const std::vector<std::vector<Codec>>& codec_chains() const { return meta().codec_chains; }

  /// What the scan could not take in.
  const std::vector<Fault>& faults() const { return meta().faults; }

  size_t shard_count() const { return shard_count_; }
  /// Without its view, which may be large. Its path stays inside the dataset.
  Shard shard(uint32_t number) const;
  /// Shard::view of it; empty where it has none.
  std::string view(uint32_t number) const;
  /// Size of a shard; nothing where it is compressed, and so not known.
  std::optional<uint64_t> plain_size(uint32_t number) const;
  std::string key(uint64_t sample) const;
  Located locate(uint64_t sample, uint32_t field) const;
  /// The path of a field that is a file of its own.
  std::string file_path(uint64_t sample, uint32_t field, const Located& located) const;
  /// The bytes around a sample whose checksum its file states (a record); nothing where it does
  /// not, and at full depth, where each field has a checksum of its own.
  std::optional<Extent> stated(uint64_t sample) const;
  /// Says that this will be located soon.
  void prefetch(uint64_t sample, uint32_t field) const;
  Extent piece(uint64_t number) const;
  Block block(uint32_t number) const;
  void read_here(uint64_t offset, MutableBytes into) const;

  /// The samples whose key has this hash; the caller compares the keys.
  void find_hash(uint64_t hash, std::vector<uint64_t>& found) const;
  /// The n-th smallest hash, and whose it is.
  std::pair<uint64_t, uint64_t> hash_at(uint64_t n) const;

  /// Reads and verifies every page.
  void verify_all() const;

 private:
  struct Header {
    uint64_t samples = 0;
    Depth depth = Depth::structure;
    uint32_t crc = 0;
  };
  struct Table {
    uint64_t offset = 0, length = 0;
    bool exists = false;
  };
  struct FieldTables {
    Table extents, scalars, suffixes, present, runs, crcs;
  };
  struct Meta {
    std::vector<Field> fields;
    std::vector<std::vector<Codec>> codec_chains;
    std::vector<Fault> faults;
  };

  const Table& table(TableKind kind) const { return general_[static_cast<size_t>(kind)]; }
  const Meta& meta() const;
  std::unique_ptr<Meta> read_meta() const;
  void verify_table(const Table& table) const;
  /// The n-th of the texts that lie one after the other in one table, their ends in another.
  std::string text(TableKind texts, TableKind ends, uint64_t n, const char* what) const;
  [[noreturn]] void corrupt(const std::string& cause) const;
  /// Where a sample's field lies, from whichever table says it.
  Extent extent_of(const FieldTables& tables, uint64_t sample) const;
  template <typename T>
  T element(const Table& table, uint64_t number, const char* what) const;

  std::string path_;
  Header header_;
  int64_t written_ns_ = 0;
  std::unique_ptr<PagedFile> file_;
  std::array<Table, static_cast<size_t>(TableKind::stated) + 1> general_;  // by kind
  std::vector<FieldTables> field_tables_;
  uint64_t shard_count_ = 0;
  // Set once, by whoever comes first; a lock could be held across a fork.
  mutable std::atomic<const Meta*> meta_{nullptr};
};

}  // namespace stoker
