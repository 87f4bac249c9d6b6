// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "dataset/block_reader.h"
#include "dataset/index.h"
#include "dataset/scan.h"
#include "dataset/shard_files.h"
#include "dataset/value.h"

namespace stoker {

struct ReaderOptions {
  std::vector<std::string> roots;                   // where shards are looked for, in this order
  std::optional<StagedRoot> staged = std::nullopt;  // looked for there before all of them
  unsigned threads = 0;                             // 0: one per usable core
  bool verify = true;                               // compare checksums where the index has them
  bool checksum = false;      // compute Item::crc also where the index has none
  bool fetch_inline = false;  // read the bytes of numbers that lie in the index as well
  size_t open_files = 64;
  uint64_t block_cache = 64 << 20;    // bytes of decoded blocks that are kept for the next fetch
  ViewLimits views = {};              // of shards that are views
  FileSystem* file_system = nullptr;  // the real one
};

/// One field of one sample on its way from the index to its value.
struct Item {
  uint32_t row = 0;    // which of the samples asked for
  uint32_t field = 0;  // in the schema
  Located located;
  uint32_t segment = 0;
  /// Bytes to fetch: 0 where absent or held inline.
  uint64_t length = 0;
  /// Where fetch() puts them; the caller sets it.
  std::byte* data = nullptr;
  /// The first `head` of them go there instead: a header that is not wanted before the rest.
  std::byte* head_data = nullptr;
  uint32_t head = 0;
  bool fetched = false;  // the caller has them already
  bool stated = false;   // the extent's checksum is what the file states about itself
  /// CRC-32C of what was fetched.
  uint32_t crc = 0;
  bool failed = false;
};

struct Batch {
  std::vector<uint64_t> samples;
  std::vector<Item> items;  // by row, then by field; absent ones are left out
};

/// What went wrong with one item.
struct ReadFailure {
  size_t item = 0;
  ErrorKind kind = ErrorKind::io;
  Fault fault;
  int os_error = 0;  // the errno behind it, or 0
};

/// Reads samples in three steps: locate (the index alone), fetch (any order, merged, many threads),
/// decode. The caller provides the memory in between, so bytes go straight to where they are
/// wanted. Safe from many threads, also after a fork.
class Reader {
 public:
  Reader(std::shared_ptr<const Index> index, ReaderOptions options);
  ~Reader();

  const Index& index() const { return *index_; }

  /// `fields` are numbers in the schema; all where empty. Throws Error(usage) for a sample that
  /// does not exist.
  Batch locate(std::span<const uint64_t> samples, std::span<const uint32_t> fields = {}) const;

  /// Fills item.data and item.crc of every item with a length. Failures are returned, not thrown,
  /// so that one bad sample need not cost the others.
  std::vector<ReadFailure> fetch(Batch& batch) const;

  /// The value of an item that was fetched; points into item.data.
  /// Throws Error(corrupt) that names shard, sample and field.
  Value decode(const Batch& batch, const Item& item) const;
  /// The same; throws with the cause alone.
  Value decode(const Item& item) const;

  /// What to throw where there is no memory for a batch: names the sample that is too large.
  Error no_memory(const Batch& batch) const;
  /// Shard and offset of an item, for messages.
  Fault fault(const Batch& batch, const Item& item, std::string cause) const;

 private:
  struct Fetcher;
  struct OpenShard;
  struct Untouched;
  Fetcher& fetcher() const;
  std::string file_path(const Segment& segment, uint64_t sample, const Item& item) const;
  class Failures;
  void verify(Item& item) const;
  void fetch_items(Batch& batch, std::vector<uint32_t>& order, Failures& failures) const;
  void fetch_records(Batch& batch, std::vector<uint8_t>& done, Failures& failures) const;
  std::optional<Extent> record_of(const Batch& batch, std::span<const Item> row) const;
  bool copy_from(const Item& record, Item& item) const;
  void confirm_inline(Batch& batch, const std::vector<uint32_t>& inlined, Failures& failures) const;
  void confirm(OpenShard& shard, Untouched& untouched, const Batch& batch, const Item& item) const;
  static bool all_as_indexed(ShardFiles& files, const Segment& segment);
  bool is_untouched(Fetcher& fetcher, Untouched& untouched, const Batch& batch,
                    const Item& item) const;
  static void check_bounds(const Segment& segment, const Extent& extent);
  static void name_place(const Segment& segment, const Extent& extent, Fault& fault);
  void fetch_run(OpenShard& shard, DecodedBlocks& blocks, const Batch& batch,
                 std::span<const uint32_t> items) const;
  void fetch_extent(OpenShard& shard, DecodedBlocks& blocks, const Segment& segment,
                    const Extent& extent, MutableBytes into) const;
  std::vector<std::byte> decode_block(OpenShard& shard, const Segment& segment,
                                      uint32_t number) const;
  DecodedBlock shared_block(OpenShard& shard, uint32_t segment, uint32_t number) const;

  std::shared_ptr<const Index> index_;
  ReaderOptions options_;
  mutable std::atomic<Fetcher*> fetcher_{nullptr};
};

/// Throws what a failure stands for.
[[noreturn]] void throw_failure(const ReadFailure& failure);

/// The samples and the memory that their values point into: read_many for C++.
struct Samples {
  Batch batch;
  std::unique_ptr<std::byte[]> memory;
  std::vector<std::vector<std::pair<uint32_t, Value>>> rows;  // per sample: field number, value
};
Samples read_many(const Reader& reader, std::span<const uint64_t> samples,
                  std::span<const uint32_t> fields = {});

}  // namespace stoker
