// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"

namespace stoker {

// The bytes of an LMDB file (data.mdb) of version 1, as 64-bit little-endian machines write it;
// docs/formats/lmdb.md describes them. A file is pages of equal size; two of them, 0 and 1, say in
// turn where the trees begin. A tree's leaves hold keys and small values, large values lie in
// overflow pages of their own.

inline constexpr uint32_t kLmdbMagic = 0xBEEFC0DE;
inline constexpr uint32_t kLmdbVersion = 1;
inline constexpr uint64_t kLmdbPageHead = 16;
inline constexpr uint64_t kLmdbNodeHead = 8;
inline constexpr uint64_t kLmdbSmallestPage = 256;
inline constexpr uint64_t kLmdbLargestPage = 65536;
inline constexpr uint64_t kLmdbNoPage = ~uint64_t{0};
inline constexpr size_t kLmdbLongestKey = 511;

/// Kinds of pages: LmdbPageHead::flags.
inline constexpr uint16_t kLmdbBranch = 0x01;
inline constexpr uint16_t kLmdbLeaf = 0x02;
inline constexpr uint16_t kLmdbOverflow = 0x04;
inline constexpr uint16_t kLmdbMeta = 0x08;
inline constexpr uint16_t kLmdbDirty = 0x10;  // meaningless on disk

/// Of a leaf's node.
inline constexpr uint16_t kLmdbBigValue = 0x01;  // the value is the number of an overflow page
inline constexpr uint16_t kLmdbSubTree = 0x02;   // the value is an LmdbTree
inline constexpr uint16_t kLmdbManyValues = 0x04;

/// Of LmdbTree::flags.
inline constexpr uint16_t kLmdbIntegerKeys = 0x08;

struct LmdbPageHead {
  uint64_t number;
  uint16_t pad;
  uint16_t flags;
  /// Where the list of nodes ends and where the nodes begin; in an overflow page, together, how
  /// many pages it goes on.
  uint16_t lower, upper;

  uint32_t pages() const { return lower | uint32_t{upper} << 16; }
  size_t nodes() const { return (lower - kLmdbPageHead) / 2; }
};
static_assert(sizeof(LmdbPageHead) == kLmdbPageHead);

struct LmdbNodeHead {
  uint16_t low, high;  // length of the value; of a branch, with flags, the page below
  uint16_t flags;
  uint16_t key_length;

  uint32_t value_length() const { return low | uint32_t{high} << 16; }
  uint64_t page() const { return low | uint64_t{high} << 16 | uint64_t{flags} << 32; }
};
static_assert(sizeof(LmdbNodeHead) == kLmdbNodeHead);

struct LmdbTree {
  uint32_t pad;  // of the tree of free pages: the page size
  uint16_t flags;
  uint16_t depth;
  uint64_t branch_pages, leaf_pages, overflow_pages;
  uint64_t entries;
  uint64_t root;
};
static_assert(sizeof(LmdbTree) == 48);

struct LmdbMeta {
  uint32_t magic;
  uint32_t version;
  uint64_t address;
  uint64_t map_size;
  LmdbTree free, main;
  uint64_t last_page;
  uint64_t transaction;
};
static_assert(sizeof(LmdbMeta) == 136);

}  // namespace stoker
