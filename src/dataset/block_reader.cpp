// SPDX-License-Identifier: Apache-2.0
#include "dataset/block_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/crc32c.h"
#include "base/error.h"
#include "dataset/codec.h"

namespace stoker {

std::vector<std::byte> read_block(ReadableFile& file, uint64_t file_size, const Block& block,
                                  std::span<const Codec> chain, bool verify) {
  if (block.offset > file_size || block.stored_length > file_size - block.offset) {
    throw Error(
        ErrorKind::corrupt,
        fmt::format("its block at offset {} reaches beyond the end of the file", block.offset));
  }
  std::vector<std::byte> stored(block.stored_length);
  const size_t got = file.read_at(block.offset, stored);
  if (got != stored.size()) {
    throw Error(ErrorKind::corrupt, fmt::format("the shard ends at offset {}, {} bytes short",
                                                block.offset + got, stored.size() - got));
  }
  if (verify && block.has_stored_crc && crc32c(stored) != block.stored_crc) {
    throw Error(ErrorKind::corrupt,
                fmt::format("checksum of its block at offset {} differs", block.offset));
  }
  try {
    return decode_block(stored, chain, block.decoded_length);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("block at offset {}: {}", block.offset, error.what()));
  }
}

namespace {

uint64_t name_of(uint32_t segment, uint32_t number) { return uint64_t{segment} << 32 | number; }

}  // namespace

DecodedBlock BlockCache::find(uint32_t segment, uint32_t number, uint64_t changes) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(name_of(segment, number));
  if (found == known_.end() || found->second->changes != changes) return nullptr;
  kept_.splice(kept_.begin(), kept_, found->second);
  return kept_.front().block;
}

void BlockCache::keep(uint32_t segment, uint32_t number, uint64_t changes, DecodedBlock block) {
  if (block->size() > capacity_) return;
  std::list<Kept> dropped;  // freed after the lock
  const std::lock_guard lock(mutex_);
  const uint64_t name = name_of(segment, number);
  const auto drop = [&](std::list<Kept>::iterator kept) {
    size_ -= kept->block->size();
    known_.erase(kept->name);
    dropped.splice(dropped.begin(), kept_, kept);
  };
  if (const auto known = known_.find(name); known != known_.end()) {
    if (known->second->changes >= changes) return;  // another thread was quicker
    drop(known->second);
  }
  size_ += block->size();
  kept_.push_front({name, changes, std::move(block)});
  known_.emplace(name, kept_.begin());
  while (size_ > capacity_) drop(std::prev(kept_.end()));
}

const std::vector<std::byte>& DecodedBlocks::get(uint32_t number) {
  // The blocks that one sample lies in, and some more.
  constexpr uint64_t kKeep = 64 << 20;
  auto found = std::find_if(kept_.begin(), kept_.end(),
                            [&](const Kept& kept) { return kept.number == number; });
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
  } else {
    Kept made;
    made.number = number;
    try {
      made.block = decode_(number);
      size_ += made.block->size();
    } catch (const Error&) {
      made.failure = std::current_exception();
    }
    kept_.push_front(std::move(made));
    while (size_ > kKeep && kept_.size() > 1) {
      if (kept_.back().block) size_ -= kept_.back().block->size();
      kept_.pop_back();
    }
  }
  if (kept_.front().failure) std::rethrow_exception(kept_.front().failure);
  return *kept_.front().block;
}

}  // namespace stoker
