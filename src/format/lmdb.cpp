// SPDX-License-Identifier: Apache-2.0
#include "format/lmdb.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "format/lmdb_file.h"
#include "format/lmdb_samples.h"
#include "format/numbered_name.h"
#include "format/shard_directory.h"

namespace stoker {
namespace {

constexpr std::string_view kDataFile = "data.mdb";
constexpr std::string_view kEndings[] = {".lmdb", ".mdb"};
constexpr size_t kMostLoose = 64;

bool is_shard_name(std::string_view name) {
  return name != "lock.mdb" && std::any_of(std::begin(kEndings), std::end(kEndings), [&](auto end) {
           return name.size() > end.size() && name.ends_with(end);
         });
}

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

/// Whether the bytes of a file are those of a database, damaged or not; `named`: its name says so,
/// and what is too short to have any is a truncated one.
bool is_lmdb(const Source& source, const std::string& name, bool named) {
  const auto info = source.file_system->info(source.root + "/" + name, true);
  if (!info || info->kind != FileKind::file) return false;
  return (named && info->size < 2 * kLmdbSmallestPage) ||
         LmdbFile::is_one(*source.file_system->open(source.root + "/" + name));
}

/// Sees that it is clear which database is meant; a damaged file is left to the scan.
void look_into(const Source& source, const std::string& name) {
  const auto file = source.file_system->open(source.root + "/" + name);
  std::string cause;
  try {
    LmdbFile lmdb(*file);
    if (choose(lmdb, source.inner, cause)) return;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt) throw;
    return;
  }
  throw Error(source.inner.empty() ? ErrorKind::usage : ErrorKind::not_found,
              fmt::format("{}/{}: {}", printable(source.root), printable(name), cause));
}

std::optional<Layout> layout_of(const Source& source, std::vector<std::string> names) {
  if (names.empty()) return std::nullopt;
  look_into(source, names.front());
  Layout layout;
  for (std::string& name : names) {
    layout.parts.push_back({std::move(name), Compression::none, 0, 0});
  }
  return layout;
}

std::optional<Layout> detect_directory(const Source& source) {
  if (is_lmdb(source, std::string(kDataFile), true)) {
    return layout_of(source, {std::string(kDataFile)});
  }
  ShardDirectory found = look_at_shards(source, is_shard_name, kMostLoose);
  // Others have files with such endings, too.
  std::erase_if(found.shards, [&](const std::string& name) {
    if (is_lmdb(source, name, name.ends_with(kEndings[0]))) return false;
    ++found.other_files;
    return true;
  });
  if (found.deep || found.images > found.shards.size() || has_other_contents(found)) {
    return std::nullopt;
  }
  find_series_gaps(found.shards, found.faults);
  std::optional<Layout> layout = layout_of(source, std::move(found.shards));
  if (!layout) return std::nullopt;
  layout->hidden = found.hidden;
  layout->faults = std::move(found.faults);
  // "train.lmdb-lock" beside "train.lmdb"
  layout->unlisted = found.other_files > layout->parts.size() ? found.other_files : 0;
  return layout;
}

}  // namespace

std::optional<Layout> detect_lmdb(const Source& source) {
  if (!source.list.empty()) return std::nullopt;
  if (source.file.empty()) return detect_directory(source);
  const bool named = source.file.ends_with(kEndings[0]) || source.file == kDataFile;
  return is_lmdb(source, source.file, named) ? layout_of(source, {source.file}) : std::nullopt;
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
      *tree, [&](const LmdbEntry& entry) { samples.add(entry); },
      [&](uint64_t offset, std::string what) {
        samples.damage();
        damage(offset, std::move(what));
      });
  samples.finish();
}

}  // namespace stoker
