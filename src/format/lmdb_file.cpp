// SPDX-License-Identifier: Apache-2.0
#include "format/lmdb_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace stoker {
namespace {

constexpr unsigned kDeepest = 32;  // as LMDB itself
constexpr uint64_t kWindow = 256 << 10;

bool is_page_size(uint64_t size) {
  return std::has_single_bit(size) && size >= kLmdbSmallestPage && size <= kLmdbLargestPage;
}

/// An entry for messages: by its key, or where that cannot be read, by the one before.
std::string entry_name(std::string_view key, std::string_view before) {
  constexpr size_t kLongest = 128;
  const auto shown = [&](std::string_view text) {
    return printable(text.substr(0, kLongest)) + (text.size() > kLongest ? "…" : "");
  };
  if (!key.empty()) return fmt::format("the entry '{}'", shown(key));
  if (!before.empty()) return fmt::format("the entry after '{}'", shown(before));
  return "the first entry of a page";
}

}  // namespace

/// One look at a tree.
struct LmdbFile::Walk {
  const OnEntry& entry;
  const OnDamage& damage;
  std::vector<bool> visited;  // by page
  bool repeated = false;      // a page was come to twice, and that was said
};

bool LmdbFile::is_one(ReadableFile& file) {
  bool found = meta_at(file, 0).has_value();
  for (uint64_t size = kLmdbSmallestPage; !found && size <= kLmdbLargestPage; size *= 2) {
    found = meta_at(file, size).has_value();
  }
  return found;
}

LmdbFile::LmdbFile(ReadableFile& file) : file_(file), size_(file.info().size) {
  std::optional<LmdbMeta> first = meta_at(file, 0), second;
  if (first && is_page_size(first->free.pad)) second = meta_at(file, first->free.pad);
  // The first one is damaged: the second lies behind a page of unknown size.
  for (uint64_t size = kLmdbSmallestPage; !first && !second && size <= kLmdbLargestPage;
       size *= 2) {
    second = meta_at(file, size);
    if (second && second->free.pad != size) second.reset();
  }
  const std::optional<LmdbMeta> any = first ? first : second;
  if (first && !fits(*first)) first.reset();
  if (second && !fits(*second)) second.reset();
  if (!first && !second) {
    if (any && any->version != kLmdbVersion) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("an LMDB file of version {}; this program reads version {}",
                              any->version, kLmdbVersion));
    }
    throw Error(ErrorKind::corrupt,
                "neither of its two beginnings can be right: truncated, damaged, or written on a "
                "machine of another kind");
  }
  if (!first || !second) {
    doubt_ = fmt::format(
        "page {} cannot be right; what page {} says is read, which may be one "
        "transaction older",
        first ? 1 : 0, first ? 0 : 1);
  }
  // The younger one is in force.
  meta_ = !second || (first && first->transaction >= second->transaction) ? *first : *second;
  page_size_ = meta_.free.pad;
  if (doubt_.empty() && size_ % page_size_ != 0) {
    doubt_ = "the file ends within a page: truncated, or something was appended to it";
  }
  window_.resize(kWindow);
}

std::optional<LmdbMeta> LmdbFile::meta_at(ReadableFile& file, uint64_t offset) {
  std::array<std::byte, kLmdbPageHead + sizeof(LmdbMeta)> bytes;
  if (file.read_at(offset, bytes) != bytes.size()) return std::nullopt;
  const auto head = load<LmdbPageHead>(bytes.data());
  const auto meta = load<LmdbMeta>(bytes.data() + kLmdbPageHead);
  if ((head.flags & kLmdbMeta) == 0 || meta.magic != kLmdbMagic) return std::nullopt;
  return meta;
}

bool LmdbFile::fits(const LmdbMeta& meta) const {
  if (meta.version != kLmdbVersion || !is_page_size(meta.free.pad)) return false;
  const uint64_t pages = size_ / meta.free.pad;
  return meta.main.root == kLmdbNoPage || meta.main.root < pages;
}

/// Empty where the file has no such page. Valid until the next call.
Bytes LmdbFile::page(uint64_t number) {
  if (number < 2 || number >= size_ / page_size_) return {};
  const uint64_t offset = number * page_size_;
  if (offset < window_begin_ || offset + page_size_ > window_end_) {
    // Whoever goes forward reads on; whoever jumps does not read what he will not look at.
    const bool forward = number > last_page_ && number - last_page_ <= 4;
    const uint64_t wanted = forward ? kWindow : page_size_;
    const size_t got = file_.read_at(offset, MutableBytes(window_).first(wanted));
    window_begin_ = offset;
    window_end_ = offset + got;
    if (got < page_size_) return {};
  }
  last_page_ = number;
  return Bytes(window_).subspan(offset - window_begin_, page_size_);
}

void LmdbFile::walk(const LmdbTree& tree, const OnEntry& entry, const OnDamage& damage) {
  if (tree.root == kLmdbNoPage) return;
  Walk walk{entry, damage, std::vector<bool>(size_ / page_size_)};
  walk_page(walk, tree.root, 0);
}

void LmdbFile::walk_page(Walk& walk, uint64_t number, unsigned depth) {
  const auto damage = [&](std::string cause) {
    walk.damage(number < size_ / page_size_ ? number * page_size_ : size_, std::move(cause));
  };
  const Bytes bytes = page(number);
  if (bytes.empty()) {
    return damage(
        fmt::format("the tree has page {}, and the file ends before it: truncated or "
                    "damaged",
                    number));
  }
  if (walk.visited[number]) {
    if (std::exchange(walk.repeated, true)) return;
    return damage(
        fmt::format("the tree comes to page {} twice: its pages point at each other", number));
  }
  walk.visited[number] = true;
  const auto head = load<LmdbPageHead>(bytes.data());
  if (head.number != number || head.lower < kLmdbPageHead || head.lower > head.upper ||
      head.upper > page_size_ || head.lower % 2 != 0) {
    return damage(fmt::format("page {} is damaged: those below it are lost", number));
  }
  if (depth >= kDeepest) return damage("the tree is deeper than any can be");
  switch (head.flags & ~kLmdbDirty) {
    case kLmdbBranch:
      return walk_branch(walk, number, depth);
    case kLmdbLeaf:
      return walk_leaf(walk, number);
    default:
      return damage(fmt::format("page {} belongs to no tree (flags {:#x})", number, head.flags));
  }
}

void LmdbFile::walk_branch(Walk& walk, uint64_t number, unsigned depth) {
  std::vector<uint64_t> below;
  {
    const Bytes bytes = page(number);
    const size_t nodes = load<LmdbPageHead>(bytes.data()).nodes();
    for (size_t i = 0; i < nodes; ++i) {
      const auto at = load<uint16_t>(bytes.data() + kLmdbPageHead + 2 * i);
      if (at < kLmdbPageHead || at + kLmdbNodeHead > bytes.size()) {
        walk.damage(number * page_size_, fmt::format("node {} of page {} lies outside of it: what "
                                                     "is below is lost",
                                                     i, number));
        continue;
      }
      below.push_back(load<LmdbNodeHead>(bytes.data() + at).page());
    }
  }
  for (size_t i = 0; i < below.size(); ++i) {
    size_t gone = i;  // of a truncated file whole runs are
    while (gone < below.size() && below[gone] >= walk.visited.size()) ++gone;
    if (gone > i + 1) {
      walk.damage(size_, fmt::format("the tree has page {} and {} others, and the file ends before "
                                     "them: truncated or damaged",
                                     below[i], gone - i - 1));
      i = gone - 1;
      continue;
    }
    walk_page(walk, below[i], depth + 1);
  }
}

void LmdbFile::walk_leaf(Walk& walk, uint64_t number) {
  // Looking for large values may move the window.
  const Bytes window = page(number);
  const std::vector<std::byte> kept(window.begin(), window.end());
  const Bytes bytes(kept);
  const size_t nodes = load<LmdbPageHead>(bytes.data()).nodes();
  std::string_view before;
  for (size_t i = 0; i < nodes; ++i) {
    const auto at = load<uint16_t>(bytes.data() + kLmdbPageHead + 2 * i);
    LmdbEntry entry;
    const std::string cause = take_node(bytes, number * page_size_, at, entry);
    if (cause.empty()) {
      walk.entry(entry);
    } else {
      walk.damage(number * page_size_, fmt::format("{}: {}", entry_name(entry.key, before), cause));
    }
    if (!entry.key.empty()) before = entry.key;
  }
}

std::string LmdbFile::take_node(Bytes page, uint64_t page_offset, size_t at, LmdbEntry& entry) {
  if (at < kLmdbPageHead || at + kLmdbNodeHead > page.size()) return "lies outside of the page";
  const auto head = load<LmdbNodeHead>(page.data() + at);
  const size_t key = at + kLmdbNodeHead;
  if (head.key_length == 0 || head.key_length > page.size() - key) {
    return fmt::format("a key of {} bytes cannot be", head.key_length);
  }
  const size_t value = key + head.key_length;
  entry.key = as_text(page.subspan(key, head.key_length));
  entry.flags = head.flags;
  entry.node = page_offset + at;
  entry.offset = page_offset + value;
  entry.length = head.value_length();
  const uint64_t here = (head.flags & kLmdbBigValue) != 0 ? sizeof(uint64_t) : entry.length;
  if (here > page.size() - value) {
    return fmt::format("a value of {} bytes goes beyond the page", here);
  }
  if ((head.flags & kLmdbSubTree) != 0) {
    if (entry.length != sizeof(LmdbTree)) return "a tree below it is not as long as one";
    entry.tree = load<LmdbTree>(page.data() + value);
  } else if ((head.flags & kLmdbBigValue) != 0) {
    return find_big_value(load<uint64_t>(page.data() + value), entry);
  }
  return {};
}

std::string LmdbFile::find_big_value(uint64_t number, LmdbEntry& entry) {
  const Bytes bytes = page(number);
  const auto lost = [&](std::string_view why) {
    return fmt::format("its value in page {} {}", number, why);
  };
  if (bytes.empty()) return lost("is beyond the end of the file: truncated or damaged");
  const auto head = load<LmdbPageHead>(bytes.data());
  if (head.number != number || (head.flags & ~kLmdbDirty) != kLmdbOverflow) {
    return lost("is not there: the page is damaged or another's");
  }
  const uint64_t room = head.pages() * page_size_;
  entry.offset = number * page_size_ + kLmdbPageHead;
  if (room < kLmdbPageHead || entry.length > room - kLmdbPageHead) {
    return lost(fmt::format("does not fit: {} bytes in {} pages", entry.length, head.pages()));
  }
  if (entry.offset > size_ || entry.length > size_ - entry.offset) {
    return lost("goes beyond the end of the file: truncated");
  }
  return {};
}

}  // namespace stoker
