// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/lmdb_bytes.h"
#include "os/file_system.h"

namespace stoker {

/// One entry of a tree.
struct LmdbEntry {
  std::string_view key;  // valid until the next entry
  uint16_t flags = 0;    // kLmdbBigValue …
  uint64_t node = 0;     // offset in the file
  uint64_t offset = 0;   // of the value, wherever it lies
  uint64_t length = 0;
  std::optional<LmdbTree> tree;  // where the value is one
};

/// Walks the trees of an LMDB file. Believes no number in it: pages, lengths and depths are checked
/// against the file, and no walk looks at a page twice.
class LmdbFile {
 public:
  using OnEntry = std::function<void(const LmdbEntry&)>;
  using OnDamage = std::function<void(uint64_t offset, std::string cause)>;

  /// Whether one of the two pages that begin such a file is there.
  static bool is_one(ReadableFile& file);
  /// Throws Error(corrupt), with the cause alone, where neither of its two beginnings can be right.
  explicit LmdbFile(ReadableFile& file);

  uint64_t page_size() const { return page_size_; }
  const LmdbTree& main() const { return meta_.main; }
  /// What is wrong though one of its beginnings is right, or empty.
  const std::string& doubt() const { return doubt_; }

  /// Every entry in the order of the keys; each place that cannot be right, behind which it goes
  /// on.
  void walk(const LmdbTree& tree, const OnEntry& entry, const OnDamage& damage);

 private:
  struct Walk;
  static std::optional<LmdbMeta> meta_at(ReadableFile& file, uint64_t offset);
  bool fits(const LmdbMeta& meta) const;
  Bytes page(uint64_t number);
  void walk_page(Walk& walk, uint64_t number, unsigned depth);
  void walk_branch(Walk& walk, uint64_t number, unsigned depth);
  void walk_leaf(Walk& walk, uint64_t number);
  /// Why it cannot be right; empty where it can.
  std::string take_node(Bytes page, uint64_t page_offset, size_t at, LmdbEntry& entry);
  std::string find_big_value(uint64_t number, LmdbEntry& entry);

  ReadableFile& file_;
  uint64_t size_ = 0;
  uint64_t page_size_ = 0;
  LmdbMeta meta_ = {};
  std::string doubt_;
  std::vector<std::byte> window_;  // pages that lie together are read together
  uint64_t window_begin_ = 0, window_end_ = 0;
  uint64_t last_page_ = 0;
};

}  // namespace stoker
