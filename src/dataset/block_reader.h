// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "dataset/extent.h"
#include "os/file_system.h"

namespace stoker {

/// The decoded bytes of a block of `file`, which has `file_size` bytes. Throws Error(corrupt) with
/// the cause alone where it lies outside, is damaged, or, with `verify`, has another checksum.
std::vector<std::byte> read_block(ReadableFile& file, uint64_t file_size, const Block& block,
                                  std::span<const Codec> chain, bool verify);

using DecodedBlock = std::shared_ptr<const std::vector<std::byte>>;

/// Decoded blocks that were used last, for all threads of a Reader: a loop that reads samples one
/// by one decodes the block that several of them share once.
class BlockCache {
 public:
  explicit BlockCache(uint64_t capacity) : capacity_(capacity) {}

  /// Null where it is not known, or was kept before the latest of `changes`; see
  /// ShardFiles::changes().
  DecodedBlock find(uint32_t segment, uint32_t number, uint64_t changes);
  void keep(uint32_t segment, uint32_t number, uint64_t changes, DecodedBlock block);

 private:
  struct Kept {
    uint64_t name = 0;
    uint64_t changes = 0;
    DecodedBlock block;
  };
  const uint64_t capacity_;
  std::mutex mutex_;
  std::list<Kept> kept_;  // last used first
  std::unordered_map<uint64_t, std::list<Kept>::iterator> known_;
  uint64_t size_ = 0;
};

/// The decoded blocks of one segment that were used last, so that neighbours in one need it decoded
/// once. Belongs to one thread.
class DecodedBlocks {
 public:
  using Decode = std::function<DecodedBlock(uint32_t number)>;
  explicit DecodedBlocks(Decode decode) : decode_(std::move(decode)) {}

  /// Of block `number`, until the next call. A block that cannot be decoded throws each time, but
  /// is tried once.
  const std::vector<std::byte>& get(uint32_t number);

 private:
  struct Kept {
    uint32_t number = 0;
    DecodedBlock block;
    std::exception_ptr failure;
  };
  Decode decode_;
  std::list<Kept> kept_;  // last used first
  uint64_t size_ = 0;
};

}  // namespace stoker
