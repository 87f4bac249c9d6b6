// SPDX-License-Identifier: Apache-2.0
#include "dataset/splits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "base/json.h"
#include "base/text.h"

namespace stoker {
namespace {

using Words = std::vector<std::string>;

constexpr std::array<std::string_view, 19> kSplitWords = {
    "train",     "training",   "trainval", "val",         "valid",       "validation", "test",
    "testing",   "dev",        "devel",    "development", "eval",        "evaluation", "minival",
    "unlabeled", "unlabelled", "holdout",  "heldout",     "unsupervised"};
// Wordless shards next to those of one split: more than this are classes, of which one is "train".
constexpr size_t kMostUnnamed = 3;
constexpr std::string_view kDigits = "0123456789";
constexpr uint64_t kLargestJson = 1 << 20;

constexpr std::string_view kCompressed[] = {".gz", ".gzip", ".zlib", ".zst", ".xz", ".bz2", ".lz4"};
constexpr std::string_view kEndings[] = {
    ".tar",   ".tgz",    ".tfrecord", ".tfrecords", ".tfrec", ".parquet",
    ".arrow", ".arrows", ".ipc",      ".feather",   ".h5",    ".hdf5",
    ".hdf",   ".he5",    ".npy",      ".npz",       ".mdb",   ".lmdb"};
// Files with these endings may as well belong to a folder of samples.
constexpr std::string_view kOfFolders[] = {".h5",  ".hdf5", ".hdf",  ".he5", ".npy",
                                           ".npz", ".mdb",  ".lmdb", ".bin", "-ubyte"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

bool is_split_word(std::string_view word) {
  return std::find(kSplitWords.begin(), kSplitWords.end(), word) != kSplitWords.end();
}

/// Letters that belong together, in lower case: "imagesTrain_2017" is images, train.
Words words_of(std::string_view name) {
  Words words;
  for (size_t i = 0; i < name.size(); ++i) {
    if (!is_letter(name[i])) continue;
    const bool begins =
        i == 0 || !is_letter(name[i - 1]) || (is_upper(name[i]) && !is_upper(name[i - 1]));
    if (begins) words.emplace_back();
    words.back() += lower(name[i]);
  }
  return words;
}

bool strip_ending(std::string_view& name, std::span<const std::string_view> endings) {
  for (const std::string_view ending : endings) {
    if (name.size() <= ending.size() || !name.ends_with(ending)) continue;
    name.remove_suffix(ending.size());
    return true;
  }
  return false;
}

/// Takes "-00003-of-00128" off, also with the digest that the hub once put there.
bool strip_number(std::string_view& name) {
  const size_t of = name.rfind("-of-");
  if (of == name.npos) return false;
  std::string_view count = name.substr(of + 4);
  count = count.substr(0, count.find('-'));
  const std::string_view before = name.substr(0, of);
  const size_t digits = before.find_last_not_of(kDigits) + 1;
  const bool numbered = !count.empty() && count.find_first_not_of(kDigits) == count.npos &&
                        digits >= 2 && digits < before.size() && before[digits - 1] == '-';
  if (numbered) name = name.substr(0, digits - 1);
  return numbered;
}

/// What shards of one series have in common: "mnist-train" of
/// "mnist-train.tfrecord-00000-of-00008"; nothing where the name is not that of a shard.
std::optional<std::string_view> stem_of(std::string_view name) {
  if (name.find("-ubyte") != name.npos || name.starts_with("data_batch_") ||
      name == "test_batch.bin") {
    return name.substr(0, name.find('.'));
  }
  std::string_view stem = name;
  bool shard = false, fields = false;
  strip_ending(stem, kCompressed);
  for (int i = 0; i < 2; ++i) {  // ".tfrecord-00000-of-00008" and "-00000-of-00008.tfrecord"
    fields = fields || stem.ends_with(".npy");
    shard = strip_number(stem) || shard;
    shard = strip_ending(stem, kEndings) || shard;
  }
  if (!shard) return std::nullopt;
  if (fields) stem = stem.substr(0, stem.find('.'));
  const size_t end = stem.find_last_not_of(kDigits);
  if (end == stem.npos) return stem;
  stem = stem.substr(0, end + 1);
  const size_t last = stem.find_last_not_of("-_. ");
  return last == stem.npos ? stem : stem.substr(0, last + 1);
}

/// Shards of one series.
struct Series {
  std::string stem;  // of its first file
  Words words;
  std::string split;  // the word that says which split it is; empty: none
  std::vector<std::string> files;
};

/// MNIST and CIFAR-10 as they are distributed.
std::string_view well_known_split(std::string_view name) {
  if (name.find("-ubyte") != name.npos && name.starts_with("t10k-")) return "test";
  if (name.ends_with(".bin") && name.starts_with("data_batch_")) return "train";
  return {};
}

/// Fields of the same samples are in several files there.
bool has_fields_in_files(const Series& series) {
  const std::string& name = series.files.front();
  return name.ends_with(".npy") || name.find("-ubyte") != name.npos || name.ends_with(".bin");
}

std::vector<Series> series_of(const std::vector<std::string>& names) {
  std::map<std::string, Series> by_stem;
  for (const std::string& name : names) {
    const auto stem = stem_of(name);
    if (!stem) continue;
    std::string key(*stem);
    for (char& c : key) {
      if (kDigits.find(c) != kDigits.npos) c = '#';
    }
    Series& series = by_stem[key];
    if (series.files.empty()) {
      series.stem = *stem;
      series.words = words_of(*stem);
      series.split = well_known_split(name);
    }
    series.files.push_back(name);
  }
  std::vector<Series> all;
  for (auto& [key, series] : by_stem) {
    std::sort(series.files.begin(), series.files.end());
    all.push_back(std::move(series));
  }
  return all;
}

/// Looks for the word of each series, less so many that all of them begin and end with.
bool find_words_within(std::vector<Series>& all, size_t first, size_t last) {
  bool any = false;
  for (Series& series : all) {
    const auto end = series.words.end() - static_cast<ptrdiff_t>(last);
    const auto found =
        std::find_if(series.words.begin() + static_cast<ptrdiff_t>(first), end, is_split_word);
    if (series.split.empty() && found != end) series.split = *found;
    any = any || !series.split.empty();
  }
  return any;
}

/// Finds the word of each series: rather not one that all of them have in the same place.
void find_words(std::vector<Series>& all) {
  size_t first = 0, last = 0;  // words that all begin and end with
  const Words& like = all.front().words;
  const auto all_have = [&](size_t i, bool from_end) {
    return std::all_of(all.begin(), all.end(), [&](const Series& series) {
      if (first + last >= series.words.size()) return false;
      const size_t at = from_end ? series.words.size() - 1 - i : i;
      return series.words[at] == like[from_end ? like.size() - 1 - i : i];
    });
  };
  if (all.size() > 1) {
    while (all_have(first, false)) ++first;
    while (all_have(last, true)) ++last;
  }
  if (!find_words_within(all, first, last)) find_words_within(all, 0, 0);
}

/// Whether `other` is called as `series` is, but for the word that names its split.
bool differ_by_split(const Series& series, const Series& other) {
  const auto at = std::find(series.words.begin(), series.words.end(), series.split);
  if (at == series.words.end()) return false;
  const auto position = at - series.words.begin();
  Words without = series.words;
  without.erase(without.begin() + position);
  if (without == other.words) return true;
  if (other.words.size() != series.words.size()) return false;
  Words rest = other.words;
  rest.erase(rest.begin() + position);
  return rest == without;
}

/// Whether each series is whole by itself, as the hub has it: "en-00000-of-00002.parquet".
bool are_numbered_parquet(const std::vector<Series>& all) {
  return all.size() > 1 && std::all_of(all.begin(), all.end(), [](const Series& series) {
           std::string_view name = series.files.front();
           constexpr std::string_view kParquet = ".parquet";
           if (!name.ends_with(kParquet)) return false;
           name.remove_suffix(kParquet.size());
           return strip_number(name);
         });
}

/// Whether the series are several datasets.
bool are_several(const std::vector<Series>& all) {
  std::set<std::string_view> words;
  const Series* named = nullptr;
  std::vector<const Series*> unnamed;
  for (const Series& series : all) {
    if (series.split.empty()) {
      unnamed.push_back(&series);
    } else {
      named = &series;
      words.insert(series.split);
    }
  }
  if (words.size() > 1 || are_numbered_parquet(all)) return true;
  if (named == nullptr || unnamed.size() > kMostUnnamed) return false;
  return std::any_of(unnamed.begin(), unnamed.end(),
                     [&](const Series* other) { return differ_by_split(*named, *other); });
}

void add_files(Split& split, const Series& series) {
  split.files.insert(split.files.end(), series.files.begin(), series.files.end());
  std::sort(split.files.begin(), split.files.end());
  if (series.stem != split.name) split.others.push_back(series.stem);
}

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

bool is_directory(FileSystem& files, const std::string& path) {
  const auto info = files.info(path, true);
  return info && info->kind == FileKind::directory;
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
  std::vector<std::string> files, directories;  // sorted
  size_t shards = 0, images = 0;
};

bool has_image_ending(std::string_view name) {
  constexpr std::string_view kImages[] = {".jpg", ".jpeg", ".png", ".webp",
                                          ".gif", ".bmp",  ".JPEG"};
  return strip_ending(name, kImages);
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
  for (const std::string& name : listing.files) listing.shards += is_shard_ending(name) ? 1 : 0;
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

}  // namespace

bool is_shard_ending(std::string_view name) { return stem_of(name).has_value(); }

std::vector<Split> splits_of_files(const std::vector<std::string>& names) {
  std::vector<Series> all = series_of(names);
  if (all.empty()) return {};
  find_words(all);
  if (!are_several(all)) {
    Split one{all.front().split, "", {}, {}};
    for (const Series& series : all) {
      if (series.split != one.name) return {};
      add_files(one, series);
    }
    return one.name.empty() ? std::vector<Split>{} : std::vector<Split>{one};
  }
  std::map<std::string, size_t> series_with;  // a word
  for (const Series& series : all) {
    if (!has_fields_in_files(series)) ++series_with[series.split];
  }
  std::map<std::string, Split> splits;
  for (const Series& series : all) {
    const bool by_word = !series.split.empty() && series_with[series.split] < 2;
    Split& split = splits[by_word ? series.split : series.stem];
    split.name = by_word ? series.split : series.stem;
    add_files(split, series);
  }
  std::vector<Split> list;
  for (auto& [name, split] : splits) list.push_back(std::move(split));
  return list;
}

std::vector<Split> splits_of_directories(const std::vector<std::string>& names) {
  struct Like {
    std::set<std::string> words;
    std::vector<Split> splits;
  };
  std::map<Words, Like> all;  // by the words of a name, without the one that names a split
  for (const std::string& name : names) {
    Words words = words_of(name);
    const auto word = std::find_if(words.begin(), words.end(), is_split_word);
    if (word == words.end()) continue;
    const std::string split = *word;
    *word = "*";
    Like& like = all[words];
    like.words.insert(split);
    like.splits.push_back({name, name, {}, {}});
    if (name != split) like.splits.back().others.push_back(split);
  }
  std::vector<Split> splits;
  for (const auto& [words, like] : all) {
    if (like.words.size() < 2) continue;
    splits.insert(splits.end(), like.splits.begin(), like.splits.end());
  }
  std::sort(splits.begin(), splits.end(),
            [](const Split& a, const Split& b) { return a.name < b.name; });
  return splits;
}

std::vector<Split> find_splits(FileSystem& files, const std::string& root) {
  if (auto splits = splits_of_dict(files, root); !splits.empty()) return splits;
  Listing listing = list_visible(files, root);
  std::vector<Split> splits = splits_of_directories(listing.directories);
  std::erase_if(splits, [&](const Split& split) {
    return !has_contents(files, root + "/" + split.directory);
  });
  if (splits.size() > 1) return splits;
  if (listing.images > listing.shards) return {};
  const bool deep =
      std::any_of(listing.directories.begin(), listing.directories.end(),
                  [&](const std::string& name) { return has_contents(files, root + "/" + name); });
  if (deep) {
    std::erase_if(listing.files,
                  [](std::string_view name) { return strip_ending(name, kOfFolders); });
  }
  return splits_of_files(listing.files);
}

const Split* find_split(const std::vector<Split>& splits, std::string_view name) {
  for (const Split& split : splits) {
    if (split.name == name) return &split;
  }
  const Split* found = nullptr;
  for (const Split& split : splits) {
    if (std::find(split.others.begin(), split.others.end(), name) == split.others.end()) continue;
    if (found != nullptr) return nullptr;  // it could be either
    found = &split;
  }
  return found;
}

std::string only_data_directory(FileSystem& files, const std::string& root) {
  if (const auto splits = splits_of_dict(files, root); splits.size() == 1) {
    return splits.front().directory;
  }
  const std::string data = "data";
  if (!is_directory(files, root + "/" + data)) return {};
  const Listing above = list_visible(files, root);
  if (above.directories.size() != 1 || above.shards > 0 || above.images > 0) return {};
  const Listing below = list_visible(files, root + "/" + data);
  const bool shards = below.directories.empty() && below.images == 0 && below.shards > 0 &&
                      below.shards == below.files.size();
  return shards ? data : std::string();
}

std::string part_name(const std::string& split, const std::string& inner) {
  return split.empty() || inner.empty() ? split + inner : split + "::" + inner;
}

std::string names_of_splits(const std::string& root, const std::vector<Split>& splits) {
  constexpr size_t kMost = 20;
  std::string names;
  for (size_t i = 0; i < std::min(splits.size(), kMost); ++i) {
    names +=
        fmt::format("{}{}::{}", i == 0 ? "" : ", ", printable(root), printable(splits[i].name));
    if (!splits[i].files.empty()) {
      names += fmt::format(" ({} file{})", splits[i].files.size(),
                           splits[i].files.size() == 1 ? "" : "s");
    }
  }
  if (splits.size() > kMost) names += fmt::format(" and {} more", splits.size() - kMost);
  return names;
}

namespace {

std::string question(const std::string& root, const std::vector<Split>& splits) {
  const Split* train = find_split(splits, "train");
  const std::string& example = train != nullptr ? train->name : splits.front().name;
  const bool files = std::any_of(splits.begin(), splits.end(),
                                 [](const Split& split) { return !split.files.empty(); });
  std::string text = fmt::format(
      "{}: holds {} datasets, one per split: {}; name one of them (in Python also with "
      "split=\"{}\")",
      printable(root), splits.size(), names_of_splits(root, splits), printable(example));
  if (files) {
    text += fmt::format("; {}::{} takes all of them as one dataset", printable(root), kAllSplits);
  }
  return text;
}

}  // namespace

SeveralSplits::SeveralSplits(std::string root, std::vector<Split> splits)
    : Error(ErrorKind::usage, question(root, splits)),
      root_(std::move(root)),
      splits_(std::move(splits)) {}

}  // namespace stoker
