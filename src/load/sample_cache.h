// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "base/bytes.h"

namespace stoker {

/// Keeps fields of samples that were read once, as far as a limit allows: in memory, or in a file
/// on another disk. What it holds vanishes with it, also when the process is killed. Safe from many
/// threads.
class SampleCache {
 public:
  /// `directory`: where the file is made; empty: in memory. Throws Error where it cannot be.
  SampleCache(const std::string& directory, uint64_t limit);
  ~SampleCache();
  SampleCache(const SampleCache&) = delete;
  SampleCache& operator=(const SampleCache&) = delete;

  /// Fills `into` with what was put under this name; false where it is not there.
  bool get(uint64_t sample, uint32_t field, MutableBytes into);
  /// Keeps it where there is room.
  void put(uint64_t sample, uint32_t field, Bytes bytes);

  uint64_t hits() const { return hits_; }
  uint64_t bytes() const { return used_; }

 private:
  struct Kept {
    uint64_t offset = 0;  // in the file
    uint64_t length = 0;
    uint32_t crc = 0;                   // of what is in the file
    std::unique_ptr<std::byte[]> data;  // in memory
  };
  struct Name {
    uint64_t sample = 0;
    uint32_t field = 0;
    bool operator==(const Name&) const = default;
  };
  struct Hash {
    size_t operator()(const Name& name) const;
  };

  const uint64_t limit_;
  int file_ = -1;
  std::shared_mutex mutex_;
  std::unordered_map<Name, Kept, Hash> kept_;
  std::atomic<uint64_t> used_{0}, hits_{0};
};

}  // namespace stoker
