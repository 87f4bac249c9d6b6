// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <span>
#include <vector>

#include "dataset/extent.h"
#include "os/file_system.h"

namespace stoker {

/// The decoded bytes of a block of `file`, which has `file_size` bytes. Throws Error(corrupt) with
/// the cause alone where it lies outside, is damaged, or, with `verify`, has another checksum.
std::vector<std::byte> read_block(ReadableFile& file, uint64_t file_size, const Block& block,
                                  std::span<const Codec> chain, bool verify);

/// The decoded blocks of one segment that were used last, so that neighbours in one need it decoded
/// once. Belongs to one thread.
class DecodedBlocks {
 public:
  using Decode = std::function<std::vector<std::byte>(uint32_t number)>;
  explicit DecodedBlocks(Decode decode) : decode_(std::move(decode)) {}

  /// Of block `number`, until the next call. A block that cannot be decoded throws each time, but
  /// is tried once.
  const std::vector<std::byte>& get(uint32_t number);

 private:
  struct Kept {
    uint32_t number = 0;
    std::vector<std::byte> bytes;
    std::exception_ptr failure;
  };
  Decode decode_;
  std::list<Kept> kept_;  // last used first
  uint64_t size_ = 0;
};

}  // namespace stoker
