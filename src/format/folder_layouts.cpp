// SPDX-License-Identifier: Apache-2.0
#include "format/folder_layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "dataset/split_words.h"
#include "dataset/splits.h"
#include "format/unread.h"

namespace stoker {
namespace {

[[noreturn]] void ask(const Source& source, const std::string& what) {
  throw Error(ErrorKind::usage, fmt::format("{} {}", printable(source.root), what));
}

/// What a sub-directory has, as far as names say.
struct Contents {
  size_t shards = 0;  // files with many samples in each
  size_t others = 0;  // files that neither are such nor describe them
  bool empty = true;
};

/// Goes through the files of a tree, which come with those of the root in front.
class Contained {
 public:
  explicit Contained(const FolderTree& tree) : files_(tree.files) {}

  /// Of the sub-directory; those of a tree have to be asked for in order. "" is the root.
  Contents of(std::string_view top) {
    Contents contents;
    for (; next_ < files_.files.size(); ++next_) {
      const std::string& directory = files_.directories[files_.files[next_].directory];
      if (std::string_view(directory).substr(0, directory.find('/')) != top) break;
      const std::string_view name = files_.name(next_);
      contents.empty = false;
      if (holds_many_samples(name)) {
        if (contents.shards++ == 0) first_ = name;
      } else if (!may_describe(name)) {
        ++contents.others;
      }
    }
    return contents;
  }

  /// The first shard of what was last asked for.
  const std::string& first() const { return first_; }

 private:
  const FileNames& files_;
  size_t next_ = 0;
  std::string first_;
};

bool any_of_names(std::span<const std::string_view> names, std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return std::find(names.begin(), names.end(), lower) != names.end();
}

std::vector<std::string> paths_of(const Source& source, std::vector<std::string> names) {
  for (std::string& name : names) name = join_path(source.root, name);
  return names;
}

/// Sub-directories with splits of their own, as `bottle/train` and `bottle/test`.
std::vector<std::string> with_splits(const FolderTree& tree) {
  std::map<std::string, std::set<std::string>> below;
  for (const std::string& path : tree.files.directories) {
    const size_t top = path.find('/');
    if (top == path.npos) continue;
    below[path.substr(0, top)].insert(path.substr(top + 1, path.find('/', top + 1) - top - 1));
  }
  std::vector<std::string> found;
  for (const auto& [top, names] : below) {
    if (splits_of_directories({names.begin(), names.end()}).size() > 1) found.push_back(top);
  }
  return found;
}

}  // namespace

void refuse_other_layouts(const Source& source, const FolderTree& tree) {
  Contained contained(tree);
  const Contents root = contained.of("");
  const std::string shard = contained.first();
  std::vector<std::string> names, datasets, indexed, others;
  for (const FolderTree::Top& top : tree.tops) {
    const Contents contents = contained.of(top.name);
    if (contents.empty && !top.indexed) continue;
    names.push_back(top.name);
    const bool shards = contents.shards > 0 && contents.others == 0;
    // A class may have an index as well: that of all of them is another.
    (shards ? datasets : top.indexed ? indexed : others).push_back(top.name);
  }
  if (others.empty() && root.others == 0) {
    datasets.insert(datasets.end(), indexed.begin(), indexed.end());
    std::sort(datasets.begin(), datasets.end());
  }
  const bool nothing_else = others.empty() && root.others == 0 && root.shards == 0;
  const bool all = source.split == kAllSplits;
  if (!datasets.empty() && (nothing_else || !all)) {
    std::string what =
        fmt::format("holds {} dataset{}: {}", datasets.size(), datasets.size() == 1 ? "" : "s",
                    names_of_directories(paths_of(source, datasets)));
    if (root.shards > 0) others.insert(others.begin(), shard);
    if (!others.empty()) what += fmt::format(", next to {}", names_of_directories(others));
    what += datasets.size() == 1 ? "; name it" : "; name one of them";
    if (!nothing_else) {
      what +=
          fmt::format(", or {}::{} for a folder of all files", printable(source.root), kAllSplits);
    }
    ask(source, what);
  }
  if (all) return;
  if (root.shards > 0 && !names.empty()) {
    ask(source, fmt::format("holds {} with many samples, such as {}, next to sub-directories: {}; "
                            "name the file or the sub-directory that is meant, or {}::{} for a "
                            "folder of all files",
                            root.shards == 1 ? "a file" : fmt::format("{} files", root.shards),
                            printable(join_path(source.root, shard)), names_of_directories(names),
                            printable(source.root), kAllSplits));
  }
  if (const std::vector<std::string> several = with_splits(tree); !several.empty()) {
    ask(source,
        fmt::format("has sub-directories with splits of their own: {}; name one of them, or "
                    "{}::{} to take all sub-directories as classes",
                    names_of_directories(paths_of(source, several)), printable(source.root),
                    kAllSplits));
  }
  if (names.size() == 1 && root.others == 0) {
    refuse_unread_directory({join_path(source.root, names[0]), "", "", source.file_system});
  }
}

void refuse_roles(const Source& source, const FolderTree& tree) {
  constexpr std::array<std::string_view, 7> kData = {"images", "image",      "img",   "imgs",
                                                     "data",   "jpegimages", "photos"};
  constexpr std::array<std::string_view, 12> kAbout = {
      "annotation", "annotations", "imagesets", "labels",      "mask", "masks",
      "meta",       "metadata",    "bboxes",    "groundtruth", "gt",   "segmentationclass"};
  std::vector<std::string> data, about;
  for (const FolderTree::Top& top : tree.tops) {
    if (any_of_names(kAbout, top.name)) about.push_back(top.name);
    if (any_of_names(kData, top.name) || is_split_name(top.name)) data.push_back(top.name);
  }
  if (data.empty() || about.empty()) return;
  ask(source, fmt::format("has sub-directories that do not look like classes: {}, next to {}; "
                          "name the one with the samples, such as {}, or {}::{} to take all "
                          "sub-directories as classes",
                          names_of_directories(paths_of(source, data)),
                          names_of_directories(paths_of(source, about)),
                          printable(join_path(source.root, data.front())), printable(source.root),
                          kAllSplits));
}

}  // namespace stoker
