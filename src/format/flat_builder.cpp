// SPDX-License-Identifier: Apache-2.0
#include "format/flat_builder.h"

#include <algorithm>

namespace stoker {
namespace {

constexpr size_t kReference = sizeof(uint32_t);

void align(std::string& to, size_t unit, size_t ahead = 0) {
  while ((to.size() + ahead) % unit != 0) to.push_back('\0');
}

template <typename T>
void append_number(std::string& to, T value) {
  to += as_text(std::as_bytes(std::span(&value, 1)));
}

/// Makes what lies at `at` refer to `target`.
void refer(std::string& to, size_t at, size_t target) {
  store(std::as_writable_bytes(std::span(to)).data() + at, static_cast<uint32_t>(target - at));
}

}  // namespace

FlatBuilder FlatBuilder::text(std::string_view text) {
  FlatBuilder made;
  made.kind_ = Kind::text;
  made.bytes_ = text;
  return made;
}

FlatBuilder FlatBuilder::tables(std::vector<FlatBuilder> tables) {
  FlatBuilder made;
  made.kind_ = Kind::tables;
  made.children_ = std::move(tables);
  return made;
}

FlatBuilder FlatBuilder::structs(Bytes elements, size_t size) {
  FlatBuilder made;
  made.kind_ = Kind::structs;
  made.bytes_ = as_text(elements);
  made.element_size_ = size;
  return made;
}

FlatBuilder& FlatBuilder::child(unsigned field, FlatBuilder child) {
  slots_.push_back({field, {}, children_.size()});
  children_.push_back(std::move(child));
  return *this;
}

/// Appends this and what it refers to, which must lie behind it; returns where it begins.
size_t FlatBuilder::append(std::string& to) const {
  if (kind_ == Kind::table) return append_table(to);
  align(to, kind_ == Kind::structs ? 8 : 4, kind_ == Kind::structs ? kReference : 0);
  const size_t begin = to.size();
  if (kind_ != Kind::tables) {
    append_number(to, static_cast<uint32_t>(bytes_.size() / element_size_));
    to += bytes_;
    if (kind_ == Kind::text) to.push_back('\0');  // C++ readers expect it
    return begin;
  }
  append_number(to, static_cast<uint32_t>(children_.size()));
  to.append(children_.size() * kReference, '\0');
  for (size_t i = 0; i < children_.size(); ++i) {
    const size_t at = begin + kReference * (i + 1);
    refer(to, at, children_[i].append(to));
  }
  return begin;
}

size_t FlatBuilder::append_table(std::string& to) const {
  unsigned fields = 0;
  for (const Slot& slot : slots_) fields = std::max(fields, slot.field + 1);
  // The vtable lies in front of its table, the table on eight bytes for the sake of its int64s.
  const size_t vtable_size = 4 + 2 * size_t{fields};
  align(to, 8, vtable_size);
  const size_t vtable = to.size();
  to.append(vtable_size, '\0');
  const size_t begin = to.size();
  append_number(to, static_cast<int32_t>(begin - vtable));
  std::vector<uint16_t> places(fields);
  std::vector<std::pair<size_t, size_t>> references;
  for (const Slot& slot : slots_) {
    const size_t size = slot.bytes.empty() ? kReference : slot.bytes.size();
    align(to, size);
    places[slot.field] = static_cast<uint16_t>(to.size() - begin);
    if (slot.bytes.empty()) references.emplace_back(to.size(), slot.child);
    to += slot.bytes.empty() ? std::string(kReference, '\0') : slot.bytes;
  }
  std::byte* const head = std::as_writable_bytes(std::span(to)).data() + vtable;
  store(head, static_cast<uint16_t>(vtable_size));
  store(head + 2, static_cast<uint16_t>(to.size() - begin));
  for (size_t i = 0; i < places.size(); ++i) store(head + 4 + 2 * i, places[i]);
  for (const auto& [at, child] : references) refer(to, at, children_[child].append(to));
  return begin;
}

std::string FlatBuilder::build() const {
  std::string buffer(kReference, '\0');
  const size_t root = append(buffer);
  refer(buffer, 0, root);
  align(buffer, 8);
  return buffer;
}

}  // namespace stoker
