// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "dataset/extent.h"

namespace stoker {

/// The files of a shard while they are written: bytes that are still in memory, and what is known
/// about those that are not. What was appended never moves: payloads are read straight into it.
class ShardOutput {
 public:
  /// Of a shard of `files` files, numbered from 0.
  explicit ShardOutput(size_t files) : files_(files) {}

  /// The next `size` bytes of a file, uninitialised: whoever appends them fills them, padding
  /// included, before the group is sealed.
  std::byte* append(uint32_t file, size_t size);
  /// The same for bytes that are known.
  void append(uint32_t file, Bytes bytes);
  /// Where the next byte of a file will lie.
  uint64_t size(uint32_t file) const { return files_[file].size; }
  size_t files() const { return files_.size(); }

  /// Replaces bytes that were appended as zeros: sizes, counts, the address of a root. Takes effect
  /// when the shard is complete.
  void patch(uint32_t file, uint64_t offset, Bytes bytes);

  /// A chain of codecs, in the order of encoding, and a block of a file; extents name it by the
  /// number returned.
  uint32_t codecs(std::vector<Codec> chain);
  uint32_t block(const Block& block);

  // What follows is for the one who writes the files.

  /// Bytes that are summed already.
  struct Known {
    const std::byte* data = nullptr;
    uint64_t length = 0;
    uint32_t crc = 0;
  };
  /// Takes what was appended since the last call into the checksums of the files. `known` are
  /// ranges of it whose checksum need not be computed again; others are ignored.
  void sum(std::vector<Known> known = {});

  /// What can be gone back to, as long as nothing was taken out since.
  struct Mark {
    struct File {
      size_t slabs = 0, used = 0;
      uint64_t size = 0;
    };
    std::vector<File> files;
    size_t blocks = 0;
  };
  Mark mark() const;
  void rewind(const Mark& mark);

  /// A stretch of a file in memory.
  struct Slab {
    std::unique_ptr<std::byte[]> bytes;
    size_t capacity = 0, used = 0, summed = 0;
  };
  /// Of each file, in order.
  using Pending = std::vector<std::vector<Slab>>;
  /// Bytes in memory, of all files.
  uint64_t pending() const;
  /// Those of one file, in order.
  std::vector<Bytes> pending(uint32_t file) const;
  /// Takes them out, to be written. `spent` was written before: its memory is used again.
  Pending take(Pending spent = {});

  struct Patch {
    uint32_t file = 0;
    uint64_t offset = 0;
    std::string bytes;
  };
  const std::vector<Patch>& patches() const { return patches_; }
  /// CRC-32C of a file, all of whose bytes are summed, with its patches.
  uint32_t crc(uint32_t file) const;
  const std::vector<Block>& blocks() const { return blocks_; }
  const std::vector<std::vector<Codec>>& codec_chains() const { return chains_; }

 private:
  struct File {
    std::vector<Slab> slabs;
    uint64_t size = 0;
    uint32_t crc = 0;
  };

  std::vector<File> files_;
  std::vector<Patch> patches_;
  std::vector<Block> blocks_;
  std::vector<std::vector<Codec>> chains_;
};

}  // namespace stoker
