// SPDX-License-Identifier: Apache-2.0
#include "format/hdf5_btree.h"

#include <fmt/format.h>

#include <bit>
#include <vector>

namespace stoker {
namespace {

/// Nodes seen: a tree that leads back into itself would be walked for ever.
class Seen {
 public:
  void add(uint64_t address, const Hdf5Cursor& node) {
    if (!addresses_.insert(address).second) node.fail("is part of its tree twice");
  }

 private:
  std::set<uint64_t> addresses_;
};

class Walk1 {
 public:
  Walk1(Hdf5Bytes& bytes, unsigned kind, uint64_t key_size, const Hdf5Leaf1& leaf)
      : bytes_(bytes), kind_(kind), key_size_(key_size), leaf_(leaf) {}

  /// `level` is what the node must state; -1 for the root, which may state any.
  void walk(uint64_t address, int level) {
    const unsigned size = bytes_.offset_size();
    const uint64_t head = 8 + uint64_t{2} * size;
    const std::vector<std::byte> begin = bytes_.read(address, head, "B-tree node");
    Hdf5Cursor cursor = bytes_.cursor(begin, address, "B-tree node");
    cursor.expect("TREE");
    seen_.add(address, cursor);
    if (cursor.u8() != kind_) cursor.fail("is of another kind");
    const int its_level = cursor.u8();
    if (level >= 0 && its_level != level) cursor.fail("is at another level than it says");
    const unsigned count = cursor.u16();
    const uint64_t length = count * (key_size_ + size) + key_size_;
    const std::vector<std::byte> body = bytes_.read(address + head, length, "B-tree node");
    Hdf5Cursor entries = bytes_.cursor(body, address + head, "B-tree node");
    for (unsigned i = 0; i < count; ++i) {
      const uint64_t key_at = address + head + entries.passed();
      const Hdf5Cursor key = bytes_.cursor(entries.bytes(key_size_), key_at, "B-tree key");
      const uint64_t child = entries.address();
      if (its_level == 0) {
        leaf_(key, child);
      } else {
        walk(child, its_level - 1);
      }
    }
  }

 private:
  Hdf5Bytes& bytes_;
  unsigned kind_;
  uint64_t key_size_;
  const Hdf5Leaf1& leaf_;
  Seen seen_;
};

class Walk2 {
 public:
  Walk2(Hdf5Bytes& bytes, const Hdf5Record2& record) : bytes_(bytes), record_(record) {}

  void run(uint64_t address, unsigned kind) {
    const uint64_t length =
        4 + 2 + 4 + 2 + 2 + 2 + bytes_.offset_size() + 2 + bytes_.length_size() + 4;
    const std::vector<std::byte> header = bytes_.read(address, length, "B-tree header");
    Hdf5Cursor cursor = bytes_.cursor(header, address, "B-tree header");
    cursor.expect("BTHD");
    check_hdf5_checksum(cursor);
    cursor.version(0, 0);
    kind_ = cursor.u8();
    if (kind_ != kind) cursor.fail(fmt::format("is of kind {}, not {}", kind_, kind));
    node_size_ = cursor.u32();
    record_size_ = cursor.u16();
    const unsigned depth = cursor.u16();
    cursor.skip(2);
    const uint64_t root = cursor.address();
    const unsigned count = cursor.u16();
    if (depth > kDeepest) cursor.fail(fmt::format("a depth of {}", depth));
    if (record_size_ == 0 || node_size_ < kNodeOverhead + record_size_) {
      cursor.fail("nodes too small for a record");
    }
    measure(depth);
    if (root != kNowhere && count > 0) walk(root, count, depth);
  }

 private:
  static constexpr uint64_t kNodeOverhead = 4 + 1 + 1 + 4;
  static constexpr unsigned kDeepest = 32;

  /// How many bytes the counts beside a child's address take, by the level of the child.
  void measure(unsigned depth) {
    uint64_t most = (node_size_ - kNodeOverhead) / record_size_;
    count_size_ = hdf5_bytes_for(most);
    total_sizes_.assign(1, 0);
    uint64_t total = most;
    for (unsigned level = 1; level <= depth; ++level) {
      const uint64_t pointer = bytes_.offset_size() + count_size_ + total_sizes_.back();
      if (node_size_ < kNodeOverhead + pointer)
        most = 0;
      else
        most = (node_size_ - kNodeOverhead - pointer) / (record_size_ + pointer);
      if (__builtin_mul_overflow(most + 1, total, &total) ||
          __builtin_add_overflow(total, most, &total)) {
        total = ~uint64_t{0};
      }
      total_sizes_.push_back(hdf5_bytes_for(total));
    }
  }

  void walk(uint64_t address, unsigned count, unsigned level) {
    const bool leaf = level == 0;
    const uint64_t pointer =
        leaf ? 0 : bytes_.offset_size() + count_size_ + (level > 1 ? total_sizes_[level - 1] : 0);
    const uint64_t length = kNodeOverhead + count * uint64_t{record_size_} + (count + 1) * pointer;
    const std::vector<std::byte> node = bytes_.read(address, length, "B-tree node");
    Hdf5Cursor cursor = bytes_.cursor(node, address, "B-tree node");
    cursor.expect(leaf ? "BTLF" : "BTIN");
    check_hdf5_checksum(cursor);
    seen_.add(address, cursor);
    cursor.version(0, 0);
    if (cursor.u8() != kind_) cursor.fail("is of another kind than its tree");
    const uint64_t records_at = address + cursor.passed();
    const Bytes records = cursor.bytes(count * uint64_t{record_size_});
    for (unsigned i = 0; i <= count; ++i) {
      if (!leaf) {
        const uint64_t child = cursor.address();
        const uint64_t child_count = cursor.number(count_size_);
        if (level > 1) cursor.skip(total_sizes_[level - 1]);
        if (child_count > UINT16_MAX) cursor.fail("a child with too many records");
        walk(child, static_cast<unsigned>(child_count), level - 1);
      }
      if (i == count) break;
      const uint64_t at = uint64_t{i} * record_size_;
      record_(bytes_.cursor(records.subspan(at, record_size_), records_at + at, "B-tree record"));
    }
  }

  Hdf5Bytes& bytes_;
  const Hdf5Record2& record_;
  unsigned kind_ = 0;
  uint32_t node_size_ = 0;
  uint16_t record_size_ = 0;
  unsigned count_size_ = 0;
  std::vector<unsigned> total_sizes_;
  Seen seen_;
};

}  // namespace

void walk_btree1(Hdf5Bytes& bytes, uint64_t root, unsigned kind, uint64_t key_size,
                 const Hdf5Leaf1& leaf) {
  Walk1(bytes, kind, key_size, leaf).walk(root, -1);
}

void walk_btree2(Hdf5Bytes& bytes, uint64_t header, unsigned kind, const Hdf5Record2& record) {
  Walk2(bytes, record).run(header, kind);
}

unsigned hdf5_bytes_for(uint64_t limit) {
  return limit == 0 ? 1 : (static_cast<unsigned>(std::bit_width(limit)) - 1) / 8 + 1;
}

}  // namespace stoker
