// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "format/lmdb.h"
#include "format/lmdb_bytes.h"
#include "format/member_fields.h"
#include "format/member_name.h"

namespace stoker {
namespace {

constexpr uint64_t kPage = 4096;
/// Leaves are closed behind each group of samples. The caller's groups have so many on average, or
/// so many bytes: what stays empty is little.
constexpr uint64_t kGroup = 128, kGroupBytes = 1 << 20;
/// A larger node goes to an overflow page, so that two always fit into a leaf; LMDB's own limit.
constexpr uint64_t kLargestNode = (kPage - kLmdbPageHead) / 2 - 2;
constexpr uint64_t kLargestValue = 0xFFFFFFFF;

uint64_t overflow_pages(uint64_t length) { return (kLmdbPageHead + length + kPage - 1) / kPage; }

bool is_big(std::string_view key, uint64_t length) {
  return kLmdbNodeHead + key.size() + length > kLargestNode;
}

/// Of a node with what it holds in its page.
uint64_t node_size(std::string_view key, uint64_t here) {
  return round_up(kLmdbNodeHead + key.size() + here, 2);
}

void check_member(std::string_view key, uint64_t length) {
  if (key.size() > kLmdbLongestKey) {
    throw Error(ErrorKind::unsupported,
                fmt::format("key '{}' cannot be stored in an LMDB file: with {} bytes it is longer "
                            "than {}",
                            printable(key), key.size(), kLmdbLongestKey));
  }
  if (length > kLargestValue) {
    throw Error(ErrorKind::unsupported,
                fmt::format("'{}' of {} bytes cannot be stored in an LMDB file: a value has less "
                            "than 4 GiB",
                            printable(key), length));
  }
}

/// A page of a tree while its nodes are put into it: they fill it from its end.
class TreePage {
 public:
  TreePage(ShardOutput& out, uint16_t kind) : number_(out.size(0) / kPage) {
    bytes_ = out.append(0, kPage);
    std::memset(bytes_, 0, kPage);
    head_.number = number_;
    head_.flags = kind;
    head_.lower = kLmdbPageHead;
    head_.upper = kPage;
    store(bytes_, head_);
  }

  uint64_t number() const { return number_; }
  bool has_room(uint64_t size) const { return size + 2 <= uint64_t{head_.upper} - head_.lower; }

  /// Returns where what belongs to the node behind its key goes.
  std::byte* add(LmdbNodeHead node, std::string_view key, uint64_t here) {
    head_.upper = static_cast<uint16_t>(head_.upper - node_size(key, here));
    node.key_length = static_cast<uint16_t>(key.size());
    store(bytes_ + head_.upper, node);
    std::copy(key.begin(), key.end(),
              reinterpret_cast<char*>(bytes_ + head_.upper + kLmdbNodeHead));
    store(bytes_ + head_.lower, head_.upper);
    head_.lower = static_cast<uint16_t>(head_.lower + 2);
    store(bytes_, head_);
    return bytes_ + head_.upper + kLmdbNodeHead + key.size();
  }

  uint64_t offset_of(const std::byte* in_it) const {
    return number_ * kPage + static_cast<uint64_t>(in_it - bytes_);
  }

 private:
  uint64_t number_;
  std::byte* bytes_;
  LmdbPageHead head_ = {};
};

/// A page of the level below: the first of its keys, and its number.
struct Below {
  std::string key;
  uint64_t page = 0;
};

class LmdbWriter final : public ShardWriter {
 public:
  explicit LmdbWriter(ShardOutput& out) { std::memset(out.append(0, 2 * kPage), 0, 2 * kPage); }

  void place(std::span<const OutSample> samples, ShardOutput& out) override {
    group_leaves_.clear();
    group_tree_ = {};
    members_.clear();
    for (const OutSample& sample : samples) {
      const std::vector<std::string>& suffixes = member_suffixes(sample.fields);
      for (size_t i = 0; i < sample.fields.size(); ++i) {
        members_.push_back({file_name(std::string(sample.key), suffixes[i]), &sample.fields[i]});
      }
    }
    std::sort(members_.begin(), members_.end(),
              [](const Member& a, const Member& b) { return a.key < b.key; });
    std::optional<TreePage> leaf;
    const std::string* previous = last_key_.empty() ? nullptr : &last_key_;
    for (const Member& member : members_) {
      if (previous != nullptr && *previous >= member.key) refuse_again(*previous, member.key);
      previous = &member.key;
      place_member(member, leaf, out);
    }
  }

  void seal(ShardOutput&) override {
    std::move(group_leaves_.begin(), group_leaves_.end(), std::back_inserter(leaves_));
    if (!members_.empty()) last_key_ = members_.back().key;
    tree_.entries += group_tree_.entries;
    tree_.overflow_pages += group_tree_.overflow_pages;
    group_leaves_.clear();
    members_.clear();
  }

  void finish(ShardOutput& out) override {
    tree_.leaf_pages = leaves_.size();
    tree_.root = kLmdbNoPage;
    std::vector<Below> level = std::move(leaves_);
    if (!level.empty()) tree_.depth = 1;
    while (level.size() > 1) level = add_branches(level, out);
    if (!level.empty()) tree_.root = level.front().page;
    write_beginnings(out);
  }

 private:
  struct Member {
    std::string key;
    OutField* field;
  };

  [[noreturn]] static void refuse_again(const std::string& previous, const std::string& key) {
    throw Error(ErrorKind::unsupported,
                fmt::format("two samples would have the key '{}' in an LMDB file, behind '{}'",
                            printable(key), printable(previous)));
  }

  void place_member(const Member& member, std::optional<TreePage>& leaf, ShardOutput& out) {
    OutField& field = *member.field;
    check_member(member.key, field.length);
    const bool big = is_big(member.key, field.length);
    const uint64_t here = big ? sizeof(uint64_t) : field.length;
    if (!leaf || !leaf->has_room(node_size(member.key, here))) {
      leaf.emplace(out, kLmdbLeaf);
      group_leaves_.push_back({member.key, leaf->number()});
    }
    LmdbNodeHead node = {};
    node.low = static_cast<uint16_t>(field.length);
    node.high = static_cast<uint16_t>(field.length >> 16);
    node.flags = big ? kLmdbBigValue : 0;
    std::byte* const at = leaf->add(node, member.key, here);
    ++group_tree_.entries;
    if (!big) {
      field.data = at;
      field.extent = {Container::shard, 0, leaf->offset_of(at), field.length, 0};
      return;
    }
    const uint64_t pages = overflow_pages(field.length);
    const uint64_t number = out.size(0) / kPage;
    store(at, number);
    std::byte* const begin = out.append(0, pages * kPage);
    LmdbPageHead head = {};
    head.number = number;
    head.flags = kLmdbOverflow;
    head.lower = static_cast<uint16_t>(pages);
    head.upper = static_cast<uint16_t>(pages >> 16);
    store(begin, head);
    field.data = begin + kLmdbPageHead;
    field.extent = {Container::shard, 0, number * kPage + kLmdbPageHead, field.length, 0};
    const uint64_t end = kLmdbPageHead + field.length;
    std::memset(begin + end, 0, pages * kPage - end);
    group_tree_.overflow_pages += pages;
  }

  /// How many pages of a level go below each branch. LMDB takes no branch with a single one for
  /// right: where that would be the last, it takes one over from the branch before.
  static std::vector<size_t> branch_sizes(std::span<const Below> level) {
    std::vector<size_t> sizes;
    uint64_t room = 0;
    for (const Below& below : level) {
      const uint64_t size = node_size(below.key, 0) + 2;
      if (sizes.empty() || size > room) {
        sizes.push_back(0);
        // The first key of a branch is never looked at, and left out.
        room = kPage - kLmdbPageHead - node_size({}, 0) - 2;
      } else {
        room -= size;
      }
      ++sizes.back();
    }
    if (sizes.size() > 1 && sizes.back() == 1) {
      --sizes[sizes.size() - 2];
      ++sizes.back();
    }
    return sizes;
  }

  /// Pages that lead to those of the level below.
  std::vector<Below> add_branches(std::span<const Below> level, ShardOutput& out) {
    std::vector<Below> above;
    for (const size_t size : branch_sizes(level)) {
      TreePage branch(out, kLmdbBranch);
      above.push_back({level.front().key, branch.number()});
      for (size_t i = 0; i < size; ++i) {
        LmdbNodeHead node = {};
        node.low = static_cast<uint16_t>(level[i].page);
        node.high = static_cast<uint16_t>(level[i].page >> 16);
        node.flags = static_cast<uint16_t>(level[i].page >> 32);
        branch.add(node, i == 0 ? std::string_view() : std::string_view(level[i].key), 0);
      }
      level = level.subspan(size);
    }
    tree_.branch_pages += above.size();
    ++tree_.depth;
    return above;
  }

  /// Both say the same, the second as the younger: one of them may be damaged.
  void write_beginnings(ShardOutput& out) const {
    for (const uint64_t number : {0, 1}) {
      LmdbPageHead head = {};
      head.number = number;
      head.flags = kLmdbMeta;
      LmdbMeta meta = {};
      meta.magic = kLmdbMagic;
      meta.version = kLmdbVersion;
      meta.map_size = out.size(0);
      meta.free.pad = kPage;
      meta.free.flags = kLmdbIntegerKeys;
      meta.free.root = kLmdbNoPage;
      meta.main = tree_;
      meta.last_page = out.size(0) / kPage - 1;
      meta.transaction = number;
      std::array<std::byte, kLmdbPageHead + sizeof(LmdbMeta)> bytes;
      store(bytes.data(), head);
      store(bytes.data() + kLmdbPageHead, meta);
      out.patch(0, number * kPage, bytes);
    }
  }

  std::vector<Below> leaves_;
  LmdbTree tree_ = {};
  std::string last_key_;

  // Of the group that is not sealed yet.
  std::vector<Member> members_;
  std::vector<Below> group_leaves_;
  LmdbTree group_tree_ = {};
};

Storage storage_of(const Field& field, uint64_t) { return {member_encoding(field), {}, {}}; }

/// One file is what makes its directory an environment of its own: lmdb.open("OUT").
std::string name_shard(std::string_view name, uint64_t number, uint64_t count) {
  return count == 1 ? "data.mdb" : fmt::format("{}-{:06}.lmdb", name, number);
}

uint64_t size_of_sample(std::string_view key, std::span<const OutField> fields) {
  if (const std::string_view why = unfit_key(key); !why.empty()) {
    throw Error(ErrorKind::unsupported,
                fmt::format("key '{}' cannot be stored in an LMDB file: {}", printable(key), why));
  }
  const std::vector<std::string>& suffixes = member_suffixes(fields);
  uint64_t size = kPage / kGroup;  // what stays empty behind a group
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::string name = file_name(std::string(key), suffixes[i]);
    check_member(name, fields[i].length);
    const bool big = is_big(name, fields[i].length);
    const uint64_t node = node_size(name, big ? sizeof(uint64_t) : fields[i].length) + 2;
    size += kPage / ((kPage - kLmdbPageHead) / node) + fields[i].length / (kGroupBytes / kPage);
    if (big) size += overflow_pages(fields[i].length) * kPage;
  }
  return size;
}

std::unique_ptr<ShardWriter> open_writer(const OutSchema&, ShardOutput& out) {
  return std::make_unique<LmdbWriter>(out);
}

}  // namespace

const WriteFormat kLmdbWrite = {.storage = storage_of,
                                .shard_name = name_shard,
                                .suffix = member_suffix,
                                .size_of_sample = size_of_sample,
                                .open = open_writer,
                                .by_key = true};

}  // namespace stoker
