// SPDX-License-Identifier: Apache-2.0
#include "format/hdf5_group.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/hdf5_btree.h"
#include "format/hdf5_heap.h"

namespace stoker {
namespace {

constexpr int kMostSoftLinks = 16;
constexpr size_t kLongestName = 65'536;

/// Collects the links of one group. Many entries may name one long name.
class GroupLinks {
 public:
  Hdf5Link& add(Hdf5Link link, uint64_t offset) {
    bytes_ += sizeof(Hdf5Link) + link.name.size() + link.target.size();
    constexpr uint64_t kMostBytes = uint64_t{1} << 28;
    if (bytes_ > kMostBytes || link.name.size() > kLongestName) {
      throw Hdf5Error(ErrorKind::corrupt, offset, "a group with too many links, or too long ones");
    }
    return all.emplace_back(std::move(link));
  }

  std::vector<Hdf5Link> all;

 private:
  uint64_t bytes_ = 0;
};

void read_symbol_node(Hdf5File& file, const Hdf5LocalHeap& names, uint64_t address,
                      GroupLinks& links) {
  Hdf5Bytes& bytes = file.bytes();
  const std::vector<std::byte> head = bytes.read(address, 8, "symbol table node");
  Hdf5Cursor cursor = bytes.cursor(head, address, "symbol table node");
  cursor.expect("SNOD");
  cursor.version(1, 1);
  cursor.skip(1);
  const uint64_t count = cursor.u16();
  const uint64_t entry = uint64_t{2} * bytes.offset_size() + 4 + 4 + 16;
  const std::vector<std::byte> body = bytes.read(address + 8, count * entry, "symbol table node");
  Hdf5Cursor entries = bytes.cursor(body, address + 8, "symbol table node");
  for (uint64_t i = 0; i < count; ++i) {
    Hdf5Link link;
    link.name = names.text(entries.address());
    link.address = entries.address();
    constexpr uint32_t kSoft = 2;
    const uint32_t cached = entries.u32();
    entries.skip(4);
    const Bytes scratch = entries.bytes(16);
    if (cached == kSoft) {
      link.address = kNowhere;
      link.target = names.text(load<uint32_t>(scratch.data()));
    }
    links.add(std::move(link), entries.offset());
  }
}

void read_symbol_table(Hdf5File& file, const Hdf5Message& message, GroupLinks& links) {
  Hdf5Cursor cursor = file.cursor(message, "symbol table");
  const uint64_t tree = cursor.address();
  const Hdf5LocalHeap names(file.bytes(), cursor.address());
  walk_btree1(
      file.bytes(), tree, 0, file.bytes().length_size(),
      [&](const Hdf5Cursor&, uint64_t node) { read_symbol_node(file, names, node, links); });
}

Hdf5Link parse_link(Hdf5Cursor cursor) {
  cursor.version(1, 1);
  const uint8_t flags = cursor.u8();
  constexpr uint8_t kHard = 0, kSoft = 1, kExternal = 64;
  const uint8_t kind = (flags & 8) != 0 ? cursor.u8() : kHard;
  if ((flags & 4) != 0) cursor.skip(8);   // creation order
  if ((flags & 16) != 0) cursor.skip(1);  // character set
  Hdf5Link link;
  link.name = as_text(cursor.bytes(cursor.number(1U << (flags & 3U))));
  if (kind == kHard) {
    link.address = cursor.address();
  } else if (kind == kSoft) {
    link.target = as_text(cursor.bytes(cursor.u16()));
  }
  link.external = kind >= kExternal;
  return link;
}

/// Links that lie in a heap, where there are many.
void read_dense(Hdf5File& file, const Hdf5Message& message, GroupLinks& links) {
  Hdf5Cursor cursor = file.cursor(message, "link info");
  cursor.version(0, 0);
  const uint8_t flags = cursor.u8();
  if ((flags & 1) != 0) cursor.skip(8);
  const uint64_t heap_at = cursor.address();
  const uint64_t tree = cursor.address();
  if (heap_at == kNowhere) return;
  Hdf5FractalHeap heap(file.bytes(), heap_at);
  constexpr unsigned kByName = 5;
  walk_btree2(file.bytes(), tree, kByName, [&](Hdf5Cursor record) {
    record.skip(4);  // hash of the name
    const Hdf5FractalHeap::Object object = heap.object(record);
    links.add(parse_link(file.bytes().cursor(object.bytes, object.address, "link")),
              object.address);
  });
}

/// Follows `path` from a group; counts soft links down, so that a circle of them has an end.
std::optional<uint64_t> follow(Hdf5File& file, uint64_t from, std::string_view path,
                               int& soft_links) {
  uint64_t at = path.starts_with('/') ? file.root() : from;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    path.remove_prefix(slash == path.npos ? path.size() : slash + 1);
    if (name.empty() || name == ".") continue;
    const auto links = read_hdf5_links(file, file.messages(at));
    if (!links) return std::nullopt;
    const auto link = std::find_if(links->begin(), links->end(),
                                   [&](const Hdf5Link& each) { return each.name == name; });
    if (link == links->end() || link->external) return std::nullopt;
    if (link->address != kNowhere) {
      at = link->address;
      continue;
    }
    if (--soft_links < 0) return std::nullopt;
    const auto target = follow(file, at, link->target, soft_links);
    if (!target) return std::nullopt;
    at = *target;
  }
  return at;
}

}  // namespace

std::optional<std::vector<Hdf5Link>> read_hdf5_links(Hdf5File& file, const Hdf5Messages& messages) {
  const Hdf5Message* const table = find_message(messages, Hdf5Message::symbol_table);
  const Hdf5Message* const info = find_message(messages, Hdf5Message::link_info);
  if (table == nullptr && info == nullptr) return std::nullopt;
  GroupLinks links;
  if (table != nullptr) read_symbol_table(file, *table, links);
  for (const Hdf5Message& message : messages) {
    if (message.kind != Hdf5Message::link) continue;
    links.add(parse_link(file.cursor(message, "link")), message.address);
  }
  if (info != nullptr) read_dense(file, *info, links);
  std::sort(links.all.begin(), links.all.end(),
            [](const Hdf5Link& a, const Hdf5Link& b) { return a.name < b.name; });
  return std::move(links.all);
}

std::optional<uint64_t> find_hdf5_object(Hdf5File& file, std::string_view path) {
  int soft_links = kMostSoftLinks;
  return follow(file, file.root(), path, soft_links);
}

}  // namespace stoker
