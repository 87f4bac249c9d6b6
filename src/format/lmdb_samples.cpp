// SPDX-License-Identifier: Apache-2.0
#include "format/lmdb_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/inner_path.h"
#include "base/text.h"

namespace stoker {
namespace {

constexpr size_t kMaxMembers = 4096;
/// Values under keys with an ending that are looked at: their ending says what they are, unless
/// they are pickles.
constexpr size_t kLooks = 16;
constexpr size_t kDigits = 9;
constexpr std::string_view kFirstKind = "image";
constexpr std::string_view kCount = "num-samples";

bool is_digits(std::string_view text) {
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// The two parts of "image-000000001".
std::optional<std::pair<std::string_view, uint32_t>> split_numbered(std::string_view key) {
  if (key.size() < kDigits + 2 || key[key.size() - kDigits - 1] != '-') return std::nullopt;
  const std::string_view digits = key.substr(key.size() - kDigits);
  if (!is_digits(digits)) return std::nullopt;
  uint32_t number = 0;
  for (const char digit : digits) number = number * 10 + static_cast<uint32_t>(digit - '0');
  return std::pair(key.substr(0, key.size() - kDigits - 1), number);
}

std::string_view image_ending(std::string_view begin, uint64_t length) {
  const std::string_view ending = image_suffix_of(begin);
  // Two letters alone could be those of a word.
  if (ending != "bmp") return ending;
  const bool sized = begin.size() >= 6 && load<uint32_t>(as_bytes(begin).data() + 2) == length;
  return sized ? ending : std::string_view();
}

bool names_pickles(std::string_view suffix) {
  return suffix.ends_with("pkl") || suffix.ends_with("pickle") || suffix.ends_with("pyd");
}

}  // namespace

void LmdbSamples::LeftOut::add(std::string_view key, uint64_t at) {
  if (count++ > 0) return;
  first = key;
  offset = at;
}

void LmdbSamples::add(const LmdbEntry& entry) {
  if ((entry.flags & kLmdbManyValues) != 0) return many_values_.add(entry.key, entry.node);
  if ((entry.flags & kLmdbSubTree) != 0) {
    return fault(entry.node, entry.key, "is a database within the database, among values");
  }
  if (entry.key.starts_with("__")) return sink_.hidden(entry.node);  // "__len__", "__keys__"
  if (gather(entry)) return;
  const std::optional<MemberName> name = split(entry.key);
  if (!name) return sink_.hidden(entry.node);
  if (leave_out(entry, name->suffix)) return;
  if (open_ && name->key == key_ && members_.size() == kMaxMembers) {
    return fault(entry.node, key_, fmt::format("more than {} values belong to it", kMaxMembers));
  }
  if (!open_ || name->key != key_) begin(name->key);
  push(name->suffix.empty() ? image_ending(look(entry.offset, entry.length), entry.length)
                            : name->suffix,
       entry.offset, entry.length);
}

void LmdbSamples::finish() {
  flush();
  emit_gathered();
  report(many_values_, "has several values (MDB_DUPSORT), of which a sample can have none");
  report(pickles_,
         fmt::format("its value is a Python pickle. Reading it would run code that the file brings "
                     "along, so stoker does not: write image and label as values of their own, "
                     "'{0}.jpg' and '{0}.cls' (docs/formats/lmdb.md shows how)",
                     printable(pickles_.first.substr(0, pickles_.first.find('.')))));
}

std::string_view LmdbSamples::suffix(size_t member) const {
  return std::string_view(suffixes_).substr(members_[member].suffix,
                                            members_[member].suffix_length);
}

void LmdbSamples::begin(std::string_view key) {
  flush();
  open_ = true;
  suspect_ = std::exchange(damage_ahead_, false);
  key_ = key;
  members_.clear();
  suffixes_.clear();
}

void LmdbSamples::push(std::string_view suffix, uint64_t offset, uint64_t length) {
  members_.push_back({suffixes_.size(), suffix.size(), offset, length});
  suffixes_.append(suffix).append(1, '/');
}

void LmdbSamples::flush() {
  if (!open_) return;
  open_ = false;
  if (suspect_ && suffixes_ != named_suffixes_) {
    return sink_.fault({shard_,
                        members_.empty() ? 0 : members_.front().offset,
                        key_,
                        {},
                        "left out: it is next to damage and has other fields than the one before",
                        1});
  }
  if (suffixes_ != named_suffixes_) {
    fields_.assign(members_.size(), {});
    for (size_t i = 0; i < members_.size(); ++i) fields_[i].suffix = suffix(i);
    name_fields(fields_, names_);
    named_suffixes_ = suffixes_;
  }
  for (size_t i = 0; i < members_.size(); ++i) {
    fields_[i].suffix = suffix(i);
    fields_[i].extent = {Container::shard, number_, members_[i].offset, members_[i].length, 0};
  }
  sink_.sample(key_, fields_);
}

std::optional<MemberName> LmdbSamples::split(std::string_view key) {
  if (integer_keys_ && (key.size() == 4 || key.size() == 8)) {
    uint64_t number = 0;
    std::memcpy(&number, key.data(), key.size());
    number_text_ = fmt::format("{}", number);
    return MemberName{number_text_, {}};
  }
  if (!unsafe_name(key).empty()) return MemberName{key, {}};
  return split_member_name(key);
}

/// Whether the entry is one of those that are gathered: all are, where the first is.
bool LmdbSamples::gather(const LmdbEntry& entry) {
  const auto numbered = split_numbered(entry.key);
  const bool first = !std::exchange(any_, true);
  if (gathered_.empty() && !(first && numbered && numbered->first == kFirstKind)) return false;
  if (entry.key == kCount) {
    counted_ = true;
    sink_.hidden(entry.node);
    return true;
  }
  if (!numbered || numbered->first.find_first_of("./") != std::string_view::npos) return false;
  if (leave_out(entry, {})) return true;
  auto kind = gathered_.find(numbered->first);
  if (kind == gathered_.end()) kind = gathered_.try_emplace(std::string(numbered->first)).first;
  kind->second.push_back({numbered->second, static_cast<uint32_t>(entry.length), entry.offset});
  return true;
}

void LmdbSamples::emit_gathered() {
  // Images alone, which nobody has counted, may as well be meant by their whole names.
  const std::string prefix =
      gathered_.size() == 1 && !counted_ ? fmt::format("{}-", kFirstKind) : std::string();
  std::vector<std::pair<std::string_view, std::span<const Numbered>>> kinds;
  for (const auto& [kind, entries] : gathered_) kinds.emplace_back(kind, entries);
  for (;;) {
    std::optional<uint32_t> sample;
    for (const auto& [kind, rest] : kinds) {
      if (!rest.empty()) sample = std::min(sample.value_or(UINT32_MAX), rest.front().sample);
    }
    if (!sample) break;
    begin(fmt::format("{}{:0{}}", prefix, *sample, kDigits));
    for (auto& [kind, rest] : kinds) {
      if (rest.empty() || rest.front().sample != *sample) continue;
      const Numbered entry = rest.front();
      rest = rest.subspan(1);
      std::string ending(kind);
      if (kind == kFirstKind) {
        const auto image = image_ending(look(entry.offset, entry.length), entry.length);
        if (!image.empty()) ending = image;
      } else if (kind == kLabelField) {
        ending += ".txt";
      }
      push(ending, entry.offset, entry.length);
    }
  }
  flush();
}

std::string_view LmdbSamples::look(uint64_t offset, uint64_t length) {
  const auto wanted = MutableBytes(looked_).first(std::min<uint64_t>(length, looked_.size()));
  return as_text(Bytes(looked_).first(file_.read_at(offset, wanted)));
}

/// Python's pickles of protocol 2 and later begin and end so.
bool LmdbSamples::is_pickle(std::string_view begin, uint64_t offset, uint64_t length) const {
  if (length < 4 || begin.size() < 2 || begin[0] != '\x80' || begin[1] < 2 || begin[1] > 5) {
    return false;
  }
  std::byte last{};
  return file_.read_at(offset + length - 1, {&last, 1}) == 1 && last == std::byte{'.'};
}

/// Whether the value is a pickle where none is expected.
bool LmdbSamples::leave_out(const LmdbEntry& entry, std::string_view suffix) {
  if (names_pickles(suffix)) return false;
  if (!suffix.empty() && pickles_.count == 0 && looks_++ >= kLooks) return false;
  const bool pickle = is_pickle(look(entry.offset, entry.length), entry.offset, entry.length);
  if (pickle) pickles_.add(entry.key, entry.offset);
  return pickle;
}

void LmdbSamples::report(const LeftOut& left_out, std::string_view cause) {
  if (left_out.count == 0) return;
  std::string text(cause);
  if (left_out.count > 1) text += fmt::format(" ({} entries are such)", left_out.count);
  fault(left_out.offset, left_out.first, std::move(text));
}

void LmdbSamples::fault(uint64_t offset, std::string_view key, std::string cause) {
  sink_.fault({shard_, offset, std::string(key), {}, std::move(cause)});
}

}  // namespace stoker
