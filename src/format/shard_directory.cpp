// SPDX-License-Identifier: Apache-2.0
#include "format/shard_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "dataset/inflating_file.h"
#include "dataset/manifest.h"
#include "dataset/splits.h"
#include "format/member_name.h"

namespace stoker {
namespace {

/// Of what a link leads to; nothing where it leads nowhere.
std::optional<FileKind> kind_behind(const Source& source, const DirectoryEntry& entry) {
  if (entry.kind != FileKind::link && entry.kind != FileKind::unknown) return entry.kind;
  const auto info = source.file_system->info(source.root + "/" + entry.name, true);
  return info ? std::optional(info->kind) : std::nullopt;
}

/// Also where nobody may look: it is reported as part of a folder then.
bool has_something_visible(const Source& source, const std::string& directory) {
  bool visible = false;
  try {
    source.file_system->list(source.root + "/" + directory, [&](std::string_view name, FileKind) {
      visible = visible || !name.starts_with('.');
    });
  } catch (const Error& error) {
    if (error.os_error() == 0) throw;
    return true;
  }
  return visible;
}

/// What a file is called until a download, a copy or a writer has finished it: the name it is to
/// have; empty where it has no such name.
std::string_view name_when_finished(std::string_view name) {
  constexpr std::array<std::string_view, 10> kEndings = {
      ".tmp",      ".stoker-tmp", ".temp",     ".part",       ".partial",
      ".filepart", ".aria2",      ".download", ".crdownload", ".incomplete"};
  for (const std::string_view ending : kEndings) {
    if (name.ends_with(ending)) {
      name.remove_suffix(ending.size());
      return name.starts_with('.') ? name.substr(1) : name;
    }
  }
  // rsync's: ".train-000003.tar.Xy12Ab"
  constexpr size_t kRandom = 7;
  if (!name.starts_with('.') || name.size() < kRandom + 2 || name[name.size() - kRandom] != '.') {
    return {};
  }
  return name.substr(1, name.size() - 1 - kRandom);
}

bool is_image(std::string_view name) {
  const auto split = split_member_name(name);
  return split && is_image_suffix(split->suffix);
}

}  // namespace

ShardDirectory look_at_shards(const Source& source, bool (*is_shard)(std::string_view name),
                              size_t most_loose) {
  ShardDirectory found;
  std::vector<DirectoryEntry> named, others;
  std::vector<std::string> unfinished;
  source.file_system->list(source.root, [&](std::string_view name, FileKind kind) {
    if (const std::string_view finished = name_when_finished(name);
        !finished.empty() && is_shard(finished)) {
      unfinished.emplace_back(name);
    }
    if (name.starts_with('.')) {
      if (name != kIndexDirectory) ++found.hidden;
      return;
    }
    if (source.of_other_splits.contains(name)) return;
    if (is_image(name)) ++found.images;
    if (!is_shard(name) && kind == FileKind::file) ++found.other_files;
    if (is_shard(name)) {
      named.push_back({std::string(name), kind});
    } else if (kind != FileKind::file) {
      others.push_back({std::string(name), kind});
    } else if (found.loose.size() < most_loose) {
      found.loose.emplace_back(name);
    } else {
      found.more_loose = true;
    }
  });
  for (DirectoryEntry& entry : named) {
    const auto kind = kind_behind(source, entry);
    if (kind == FileKind::file) {
      found.shards.push_back(std::move(entry.name));
    } else if (kind == FileKind::directory) {
      others.push_back({std::move(entry.name), FileKind::directory});
    } else {
      found.faults.push_back(
          {entry.name, {}, {}, {}, kind ? "not a regular file" : "a link that leads nowhere"});
    }
  }
  for (const std::string& name : unfinished) {
    const std::string_view finished = name_when_finished(name);
    if (std::find(found.shards.begin(), found.shards.end(), finished) != found.shards.end())
      continue;
    found.faults.push_back(
        {name, {}, {}, {}, fmt::format("is unfinished: there is no {} yet", printable(finished))});
  }
  for (const DirectoryEntry& entry : others) {
    // Who names a split means its files.
    if (!source.of_other_splits.empty()) break;
    if (found.deep || (found.shards.empty() && found.loose.empty())) break;
    found.deep = !is_describing_directory(entry.name) &&
                 kind_behind(source, entry) == FileKind::directory &&
                 has_something_visible(source, entry.name);
  }
  std::sort(found.shards.begin(), found.shards.end());
  std::sort(found.loose.begin(), found.loose.end());
  std::sort(found.faults.begin(), found.faults.end(),
            [](const Fault& a, const Fault& b) { return a.shard < b.shard; });
  return found;
}

bool has_other_contents(const ShardDirectory& directory) {
  const auto others = std::count_if(directory.loose.begin(), directory.loose.end(),
                                    [](const std::string& name) { return !may_describe(name); });
  return static_cast<size_t>(others) > directory.shards.size();
}

Fault missing_shards(std::string_view before, size_t digits, std::string_view after, uint64_t first,
                     uint64_t last) {
  const auto name = [&](uint64_t number) {
    return fmt::format("{}{:0{}}{}", before, number, digits, after);
  };
  std::string cause = printable(name(first));
  if (first == last) {
    cause += " is missing";
  } else {
    cause += fmt::format(" to {} are missing: {} shards", printable(name(last)), last - first + 1);
  }
  return {name(first), {}, {}, {}, std::move(cause)};
}

OpenedShard open_shard(const Source& source, const Part& part, ScanSink& sink) {
  OpenedShard opened;
  opened.path = source.root + "/" + part.shard;
  opened.file = source.file_system->open(opened.path);
  const FileInfo info = opened.file->info();
  opened.size = info.size;
  Shard shard;
  shard.path = part.shard;
  shard.size = shard.end = info.size;
  shard.modified_ns = info.modified_ns;
  shard.compression = part.compression;
  opened.number = sink.shard(shard);
  opened.file = inflate(std::move(opened.file), opened.path, part.compression);
  return opened;
}

}  // namespace stoker
