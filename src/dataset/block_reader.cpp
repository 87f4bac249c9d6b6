// SPDX-License-Identifier: Apache-2.0
#include "dataset/block_reader.h"

#include <fmt/format.h>

#include <algorithm>

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
      made.bytes = decode_(number);
    } catch (const Error&) {
      made.failure = std::current_exception();
    }
    size_ += made.bytes.size();
    kept_.push_front(std::move(made));
    while (size_ > kKeep && kept_.size() > 1) {
      size_ -= kept_.back().bytes.size();
      kept_.pop_back();
    }
  }
  if (kept_.front().failure) std::rethrow_exception(kept_.front().failure);
  return kept_.front().bytes;
}

}  // namespace stoker
