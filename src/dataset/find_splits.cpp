// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "base/json.h"
#include "dataset/split_words.h"
#include "dataset/splits.h"

namespace stoker {
namespace {

constexpr uint64_t kLargestJson = 1 << 20;
// Pictures at the top of a repository are those of its description; more are samples.
constexpr size_t kMostPictures = 16;
// How far down shards are looked for, and in how many directories: en/1.0.0/train.
constexpr int kDeepest = 3;
constexpr size_t kMostLookedInto = 2;

std::vector<std::string> strings_in(const Json& json, std::string_view key) {
  std::vector<std::string> strings;
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (!json.is_object() || found == json.end() || !found->is_array()) return strings;
  for (const Json& each : *found) {
    if (each.is_string()) strings.push_back(each.get<std::string>());
  }
  return strings;
}

/// A name that leads to no other place than into the directory.
bool is_plain(std::string_view name) {
  return !name.empty() && !name.starts_with('.') && name.find('/') == name.npos;
}

/// The splits that `DatasetDict.save_to_disk` lists.
std::vector<Split> splits_of_dict(FileSystem& files, const std::string& root) {
  const std::string path = root + "/dataset_dict.json";
  const auto info = files.info(path, true);
  if (!info || info->kind != FileKind::file || info->size > kLargestJson) return {};
  std::string text(info->size, '\0');
  text.resize(files.open(path)->read_at(0, std::as_writable_bytes(std::span(text))));
  std::vector<Split> splits;
  for (const std::string& name : strings_in(parse_json_or_discard(text), "splits")) {
    if (is_plain(name)) splits.push_back({name, name, {}, {}});
  }
  return splits;
}

struct Listing {
  std::vector<std::string> files, directories;  // sorted; files are without images
  size_t shards = 0, images = 0;
  size_t many = 0;  // shards that are never a sample by themselves
};

bool has_image_ending(std::string_view name) {
  constexpr std::string_view kImages[] = {".jpg", ".jpeg", ".png", ".webp",
                                          ".gif", ".bmp",  ".JPEG"};
  return std::any_of(std::begin(kImages), std::end(kImages),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

/// What is visible in a directory; links are followed.
Listing list_visible(FileSystem& files, const std::string& root) {
  Listing listing;
  std::vector<std::string> links;
  files.list(root, [&](std::string_view name, FileKind kind) {
    if (name.starts_with('.')) return;
    if (kind == FileKind::directory) {
      listing.directories.emplace_back(name);
    } else if (kind != FileKind::file) {
      links.emplace_back(name);
    } else if (has_image_ending(name)) {
      ++listing.images;
    } else {
      listing.files.emplace_back(name);
    }
  });
  for (std::string& name : links) {
    const auto info = files.info(root + "/" + name, true);
    if (!info) continue;
    auto& list = info->kind == FileKind::directory ? listing.directories : listing.files;
    if (info->kind != FileKind::other) list.push_back(std::move(name));
  }
  for (const std::string& name : listing.files) {
    listing.shards += is_shard_ending(name) ? 1 : 0;
    listing.many += holds_many_samples(name) ? 1 : 0;
  }
  std::sort(listing.files.begin(), listing.files.end());
  std::sort(listing.directories.begin(), listing.directories.end());
  return listing;
}

/// Also where it may not be listed: who reads the split is told.
bool has_contents(FileSystem& files, const std::string& directory) {
  bool visible = false;
  try {
    files.list(directory, [&](std::string_view name, FileKind) {
      visible = visible || !name.starts_with('.');
    });
  } catch (const Error& error) {
    if (error.os_error() == 0) throw;
    return true;
  }
  return visible;
}

/// Whether a directory holds shards and little else, itself or in sub-directories.
bool holds_shards(FileSystem& files, const std::string& directory, int depth = kDeepest) {
  Listing listing;
  try {
    listing = list_visible(files, directory);
  } catch (const Error& error) {
    if (error.os_error() == 0) throw;
    return false;  // the message about it comes from reading the directory
  }
  if (listing.many > 0) return 2 * listing.many >= listing.files.size() + listing.images;
  if (listing.images > 0 || depth == 0) return false;
  std::erase_if(listing.directories, is_describing_directory);
  const auto last = listing.directories.begin() +
                    static_cast<ptrdiff_t>(std::min(listing.directories.size(), kMostLookedInto));
  return std::any_of(listing.directories.begin(), last, [&](const std::string& name) {
    return holds_shards(files, directory + "/" + name, depth - 1);
  });
}

/// Whether a directory has sub-directories and no files: the speakers of a recording's split.
bool has_only_directories(FileSystem& files, const std::string& directory) {
  try {
    const Listing listing = list_visible(files, directory);
    return !listing.directories.empty() && listing.files.empty() && listing.images == 0;
  } catch (const Error& error) {
    if (error.os_error() == 0) throw;
    return false;
  }
}

/// Directories that all have a split in their names and hold no samples of their own:
/// "train-clean-100" and "test-other", but not the classes "train_station" and "test_tube".
std::vector<Split> splits_with_levels(FileSystem& files, const std::string& root,
                                      const std::vector<std::string>& directories) {
  std::vector<Split> splits;
  std::set<std::string> words;
  for (const std::string& name : directories) {
    const std::string word = split_word_of(name);
    if (word.empty()) return {};
    words.insert(word);
    splits.push_back({name, name, {}, {word}});
  }
  const bool levels = words.size() > 1 && std::all_of(splits.begin(), splits.end(), [&](auto& s) {
                        return has_only_directories(files, root + "/" + s.directory);
                      });
  return levels ? splits : std::vector<Split>{};
}

/// Whether a file at the top of a repository is part of its description.
bool is_of_repository(const std::string& name) {
  constexpr std::array<std::string_view, 8> kEndings = {".py",  ".ipynb", ".sh",   ".tsv",
                                                        ".bib", ".cff",   ".toml", ".jsonl"};
  return may_describe(name) || std::any_of(kEndings.begin(), kEndings.end(),
                                           [&](auto ending) { return name.ends_with(ending); });
}

}  // namespace

bool may_describe(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return true;  // LICENSE
  constexpr std::array<std::string_view, 9> kEndings = {".md",  ".txt",  ".json", ".csv", ".yaml",
                                                        ".yml", ".html", ".pdf",  ".log"};
  return std::find(kEndings.begin(), kEndings.end(), name.substr(dot)) != kEndings.end();
}

bool is_describing_directory(std::string_view name) {
  constexpr std::array<std::string_view, 16> kNames = {
      "assets", "cache", "checkpoints", "doc",     "docs", "figs",   "figures", "log",
      "logs",   "media", "notebooks",   "scripts", "src",  "static", "tmp",     "wandb"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::vector<Split> find_splits(FileSystem& files, const std::string& root) {
  if (auto splits = splits_of_dict(files, root); !splits.empty()) return splits;
  Listing listing = list_visible(files, root);
  std::vector<Split> splits = splits_with_levels(files, root, listing.directories);
  if (splits.empty()) splits = splits_of_directories(listing.directories);
  std::erase_if(splits, [&](const Split& split) {
    return !has_contents(files, root + "/" + split.directory);
  });
  if (splits.size() > 1) return splits;
  if (listing.images > listing.shards) return {};
  const bool deep =
      std::any_of(listing.directories.begin(), listing.directories.end(),
                  [&](const std::string& name) { return has_contents(files, root + "/" + name); });
  if (deep) std::erase_if(listing.files, may_be_of_folder);
  return splits_of_files(listing.files);
}

DirectoryContents look_around(FileSystem& files, const std::string& root,
                              const std::vector<Split>& splits) {
  DirectoryContents contents;
  for (std::string& name : list_visible(files, root).directories) {
    const bool split = std::any_of(splits.begin(), splits.end(),
                                   [&](const Split& each) { return each.directory == name; });
    if (split && !contents.shards) contents.shards = holds_shards(files, root + "/" + name);
    if (!split) contents.other_directories.push_back(std::move(name));
  }
  return contents;
}

std::string only_data_directory(FileSystem& files, const std::string& root) {
  if (const auto splits = splits_of_dict(files, root); splits.size() == 1) {
    return splits.front().directory;
  }
  const Listing above = list_visible(files, root);
  if (above.shards > 0 || above.images > kMostPictures) return {};
  std::string only;
  for (const std::string& name : above.directories) {
    if (is_describing_directory(name) || !has_contents(files, root + "/" + name)) continue;
    if (!only.empty()) return {};
    only = name;
  }
  const bool described = std::all_of(above.files.begin(), above.files.end(), is_of_repository);
  if (only.empty() || !described) return {};
  const std::string directory = root + "/" + only;
  if ((is_split_name(only) && above.images == 0) || holds_shards(files, directory)) return only;
  if (above.images > 0) return {};
  const Listing below = list_visible(files, directory);
  if (splits_of_directories(below.directories).size() > 1) return only;
  if (only != "data") return {};
  const bool classes = below.directories.size() > 1 && below.images == 0 &&
                       std::all_of(below.files.begin(), below.files.end(), may_describe);
  if (classes) return only;
  const bool arrays = below.directories.empty() && below.images == 0 && below.shards > 0 &&
                      below.shards == below.files.size();
  return arrays ? only : std::string();
}

}  // namespace stoker
