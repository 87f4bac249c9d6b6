// SPDX-License-Identifier: Apache-2.0
#include "format/lmdb.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "format/lmdb_file.h"
#include "format/member_name.h"
#include "format/shard_directory.h"

namespace stoker {
namespace {

constexpr std::string_view kDataFile = "data.mdb";
constexpr std::string_view kEndings[] = {".lmdb", ".mdb"};
/// Values that are looked at to see what those under keys without an ending are.
constexpr size_t kLooks = 16;
constexpr size_t kMaxMembers = 4096;

bool is_shard_name(std::string_view name) {
  return name != "lock.mdb" && std::any_of(std::begin(kEndings), std::end(kEndings), [&](auto end) {
           return name.size() > end.size() && name.ends_with(end);
         });
}

bool is_lmdb(const Source& source, const std::string& name) {
  const auto info = source.file_system->info(source.root + "/" + name, true);
  if (!info || info->kind != FileKind::file) return false;
  std::array<std::byte, kLmdbPageHead + sizeof(LmdbMeta)> begin{};
  const auto file = source.file_system->open(source.root + "/" + name);
  return begins_like_lmdb(Bytes(begin).first(file->read_at(0, begin)));
}

std::optional<Layout> detect_directory(const Source& source) {
  Layout layout;
  const auto info = source.file_system->info(source.root + "/" + std::string(kDataFile), true);
  if (info && info->kind == FileKind::file) {
    layout.parts.push_back({std::string(kDataFile), Compression::none, 0, 0});
    return layout;
  }
  ShardDirectory found = look_at_shards(source, is_shard_name, 0);
  if (found.shards.empty() || found.deep || found.images > found.shards.size()) return std::nullopt;
  layout.hidden = found.hidden;
  layout.faults = std::move(found.faults);
  for (std::string& name : found.shards) {
    layout.parts.push_back({std::move(name), Compression::none, 0, 0});
  }
  // "train.lmdb-lock" beside "train.lmdb"
  layout.unlisted = found.other_files > layout.parts.size() ? found.other_files : 0;
  return layout;
}

/// What the first bytes of a value are, where they say it.
std::string_view image_suffix(std::string_view begin) {
  using namespace std::string_view_literals;
  if (begin.starts_with("\xff\xd8\xff"sv)) return "jpg";
  if (begin.starts_with("\x89PNG\r\n\x1a\n"sv)) return "png";
  if (begin.starts_with("RIFF"sv) && begin.substr(8).starts_with("WEBP"sv)) return "webp";
  if (begin.starts_with("GIF8"sv)) return "gif";
  return {};
}

/// Python's pickles of protocol 2 and later begin so.
bool is_pickle(std::string_view begin) {
  return begin.size() >= 2 && begin[0] == '\x80' && begin[1] >= 2 && begin[1] <= 5;
}

/// Makes samples of entries, which come in the order of their keys: those of one sample, "a.cls"
/// and "a.jpg", side by side.
class LmdbSamples {
 public:
  LmdbSamples(ReadableFile& file, const std::string& shard, uint32_t number, bool integer_keys,
              ScanSink& sink)
      : file_(file), shard_(shard), number_(number), integer_keys_(integer_keys), sink_(sink) {}

  void add(const LmdbEntry& entry) {
    if (refused_) return;
    if ((entry.flags & (kLmdbManyValues | kLmdbSubTree)) != 0) {
      return fault(entry.node, printable(entry.key),
                   (entry.flags & kLmdbManyValues) != 0
                       ? "has several values (MDB_DUPSORT), of which a sample can have none"
                       : "is a database within the database, beside values: left out");
    }
    if (entry.key.starts_with("__")) return sink_.hidden(entry.node);  // "__len__", "__keys__"
    const std::optional<MemberName> name = split(entry.key);
    if (!name) return sink_.hidden(entry.node);
    if (open_ && name->key == key_ && members_.size() == kMaxMembers) {
      return fault(entry.node, key_, fmt::format("more than {} values belong to it", kMaxMembers));
    }
    if (!open_ || name->key != key_) begin(name->key);
    const std::string_view suffix =
        name->suffix.empty() ? suffix_of_plain(entry) : std::string_view(name->suffix);
    if (refused_) return;
    members_.push_back({suffixes_.size(), suffix.size(), entry.offset, entry.length});
    suffixes_.append(suffix).append(1, '/');
  }

  void flush() {
    if (!open_ || refused_) return;
    open_ = false;
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

 private:
  struct Member {
    size_t suffix, suffix_length;  // in suffixes_
    uint64_t offset, length;
  };

  std::string_view suffix(size_t member) const {
    return std::string_view(suffixes_).substr(members_[member].suffix,
                                              members_[member].suffix_length);
  }

  void begin(std::string_view key) {
    flush();
    open_ = true;
    key_ = key;
    members_.clear();
    suffixes_.clear();
  }

  /// Keys that are no names (numbers as bytes, say) are taken as they are.
  std::optional<MemberName> split(std::string_view key) {
    if (integer_keys_ && (key.size() == 4 || key.size() == 8)) {
      uint64_t number = 0;
      std::memcpy(&number, key.data(), key.size());
      number_text_ = fmt::format("{}", number);
      return MemberName{number_text_, {}};
    }
    if (!unsafe_name(key).empty()) return MemberName{key, {}};
    return split_member_name(key);
  }

  /// Keys without an ending say nothing about their values: the first few values do.
  std::string_view suffix_of_plain(const LmdbEntry& entry) {
    if (looks_ < kLooks) {
      ++looks_;
      std::array<std::byte, 16> bytes{};
      const size_t wanted = std::min<uint64_t>(entry.length, bytes.size());
      const std::string_view begin = as_text(
          Bytes(bytes).first(file_.read_at(entry.offset, MutableBytes(bytes).first(wanted))));
      if (is_pickle(begin)) {
        refused_ = true;
        fault(entry.offset, entry.key,
              fmt::format("its value is a Python pickle. Reading it would run code that the file "
                          "brings along, so stoker does not: write image and label as values of "
                          "their own, '{0}.jpg' and '{0}.cls' (docs/formats/lmdb.md shows how)",
                          printable(entry.key)));
      }
      plain_suffix_ = image_suffix(begin);
    }
    return plain_suffix_;
  }

  void fault(uint64_t offset, std::string_view key, std::string cause) {
    sink_.fault({shard_, offset, std::string(key), {}, std::move(cause)});
  }

  ReadableFile& file_;
  const std::string& shard_;
  uint32_t number_;
  bool integer_keys_;
  ScanSink& sink_;

  bool open_ = false;
  std::string key_, number_text_;
  std::string suffixes_;  // one after the other, each followed by '/'
  std::vector<Member> members_;
  size_t looks_ = 0;
  bool refused_ = false;
  std::string_view plain_suffix_;

  // Of the sample before: the names need not be found out again where suffixes are equal.
  std::vector<FoundField> fields_;
  std::vector<std::string> names_;
  std::string named_suffixes_;
};

/// What the main database holds.
struct Contents {
  std::vector<std::pair<std::string, LmdbTree>> databases;
  bool values = false;
};

Contents contents_of(LmdbFile& lmdb) {
  Contents found;
  // Whoever has more entries has values: names of databases are few.
  if (lmdb.main().entries > 1000) return {{}, true};
  lmdb.walk(
      lmdb.main(),
      [&](const LmdbEntry& entry) {
        if (entry.tree && (entry.flags & kLmdbManyValues) == 0) {
          found.databases.emplace_back(entry.key, *entry.tree);
        } else {
          found.values = true;
        }
      },
      [](uint64_t, const std::string&) {});
  return found;
}

/// The tree that is meant; nothing, and why, where that cannot be said.
std::optional<LmdbTree> choose(LmdbFile& lmdb, const std::string& inner, std::string& cause) {
  const Contents contents = contents_of(lmdb);
  const auto& databases = contents.databases;
  std::string names;
  for (const auto& [name, tree] : databases) {
    if (name == inner) return tree;
    if (names.size() < 1000) {
      names += fmt::format("{}'{}' ({})", names.empty() ? "" : ", ", printable(name), tree.entries);
    }
  }
  if (!inner.empty()) {
    cause = fmt::format("has no database '{}'{}", printable(inner),
                        names.empty() ? "" : "; there are " + names);
    return std::nullopt;
  }
  if (contents.values || databases.empty()) return lmdb.main();
  if (databases.size() == 1) return databases.front().second;
  cause = fmt::format("has several databases: {}; say which one, as in ::{}", names,
                      printable(databases.front().first));
  return std::nullopt;
}

}  // namespace

std::optional<Layout> detect_lmdb(const Source& source) {
  if (!source.list.empty()) return std::nullopt;
  if (source.file.empty()) return detect_directory(source);
  if (!is_lmdb(source, source.file) && !source.file.ends_with(".lmdb") &&
      source.file != kDataFile) {
    return std::nullopt;
  }
  Layout layout;
  layout.parts.push_back({source.file, Compression::none, 0, 0});
  return layout;
}

void scan_lmdb(const Source& source, const Layout&, const Part& part, ScanSink& sink) {
  const OpenedShard shard = open_shard(source, part, sink);
  const auto damage = [&](uint64_t offset, std::string cause) {
    sink.fault({part.shard, offset, {}, {}, std::move(cause)});
  };
  std::optional<LmdbFile> lmdb;
  try {
    lmdb.emplace(*shard.file);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt) throw;
    return damage(0, error.what());
  }
  if (!lmdb->doubt().empty()) damage(0, lmdb->doubt());
  std::string cause;
  const std::optional<LmdbTree> tree = choose(*lmdb, source.inner, cause);
  if (!tree) return damage(0, std::move(cause));
  LmdbSamples samples(*shard.file, part.shard, shard.number, (tree->flags & kLmdbIntegerKeys) != 0,
                      sink);
  lmdb->walk(
      *tree, [&](const LmdbEntry& entry) { samples.add(entry); }, damage);
  samples.flush();
}

}  // namespace stoker
