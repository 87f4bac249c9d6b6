// SPDX-License-Identifier: Apache-2.0
#include "dataset/splits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "base/text.h"
#include "dataset/split_words.h"

namespace stoker {
namespace {

// Wordless shards next to those of one split: more than this are classes, of which one is "train".
constexpr size_t kMostUnnamed = 3;
constexpr std::string_view kDigits = "0123456789";

constexpr std::string_view kCompressed[] = {".gz", ".gzip", ".zlib", ".zst", ".xz", ".bz2", ".lz4"};
constexpr std::string_view kEndings[] = {
    ".tar",   ".tgz",    ".tfrecord", ".tfrecords", ".tfrec", ".parquet",
    ".arrow", ".arrows", ".ipc",      ".feather",   ".h5",    ".hdf5",
    ".hdf",   ".he5",    ".npy",      ".npz",       ".mdb",   ".lmdb"};
// Files with these endings may as well belong to a folder of samples.
constexpr std::string_view kOfFolders[] = {".h5",  ".hdf5", ".hdf",  ".he5", ".npy",
                                           ".npz", ".mdb",  ".lmdb", ".bin", "-ubyte"};
// Of these, the ones that may be a single sample of it.
constexpr std::string_view kArrays[] = {".h5", ".hdf5", ".hdf", ".he5", ".npy", ".npz", ".bin"};

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

/// Whether `other` is called as `series` is, but without the word that names its split.
bool lacks_word(const Series& series, const Series& other) {
  return !other.words.empty() && other.split.empty() && !series.split.empty() &&
         differ_in_split(series.stem, other.stem);
}

/// Whether `other` has another word in the place of the one that names the split of `series`.
bool has_other_word(const Series& series, const Series& other) {
  const auto at = std::find(series.words.begin(), series.words.end(), series.split);
  if (at == series.words.end() || other.words.size() != series.words.size()) return false;
  Words like = other.words;
  like[static_cast<size_t>(at - series.words.begin())] = series.split;
  return like == series.words;
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
  std::vector<const Series*> named, unnamed;
  for (const Series& series : all) {
    (series.split.empty() ? unnamed : named).push_back(&series);
    if (!series.split.empty()) words.insert(series.split);
  }
  if (words.size() > 1 || are_numbered_parquet(all)) return true;
  const auto any_pair = [&](bool (*differ)(const Series&, const Series&)) {
    return std::any_of(named.begin(), named.end(), [&](const Series* series) {
      return std::any_of(unnamed.begin(), unnamed.end(),
                         [&](const Series* other) { return differ(*series, *other); });
    });
  };
  return any_pair(lacks_word) || (unnamed.size() <= kMostUnnamed && any_pair(has_other_word));
}

/// What fields are called that have no word, next to the same fields of a split: images.npy and
/// val_images.npy.
std::string name_without_word(const std::vector<Series>& all) {
  const bool train = std::any_of(all.begin(), all.end(), [](const Series& series) {
    return series.split.starts_with("train");
  });
  return train ? "rest" : "train";
}

/// Whether a series without a word is one field of several.
bool is_field_of_rest(const std::vector<Series>& all, const Series& series) {
  return series.split.empty() && has_fields_in_files(series) &&
         std::any_of(all.begin(), all.end(),
                     [&](const Series& named) { return lacks_word(named, series); });
}

void add_files(Split& split, const Series& series) {
  split.files.insert(split.files.end(), series.files.begin(), series.files.end());
  std::sort(split.files.begin(), split.files.end());
  if (series.stem != split.name) split.others.push_back(series.stem);
}

}  // namespace

bool is_shard_ending(std::string_view name) { return stem_of(name).has_value(); }

bool may_be_of_folder(std::string_view name) { return strip_ending(name, kOfFolders); }

bool holds_many_samples(std::string_view name) {
  return is_shard_ending(name) && !strip_ending(name, kArrays);
}

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
    const std::string name = by_word                         ? series.split
                             : is_field_of_rest(all, series) ? name_without_word(all)
                                                             : series.stem;
    Split& split = splits[name];
    split.name = name;
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
  return fmt::format(
      "{}: holds {} datasets, one per split: {}; name one of them (in Python also with "
      "split=\"{}\")",
      printable(root), splits.size(), names_of_splits(root, splits), printable(example));
}

/// What else the directory could be, with a semicolon in front.
std::string reading_of(const std::string& root, const std::vector<Split>& splits,
                       const DirectoryContents& contents) {
  const std::string all = fmt::format("{}::{}", printable(root), kAllSplits);
  const bool files = std::any_of(splits.begin(), splits.end(),
                                 [](const Split& split) { return !split.files.empty(); });
  if (files) return fmt::format("; {} takes all of them as one dataset", all);
  std::string text;
  if (!contents.other_directories.empty()) {
    text = fmt::format("; next to them: {}", names_of_directories(contents.other_directories));
  }
  if (contents.shards) return text;
  return text + fmt::format(
                    "; if these are names of classes: {} takes all sub-directories as one "
                    "dataset",
                    all);
}

}  // namespace

std::string names_of_directories(const std::vector<std::string>& directories) {
  constexpr size_t kMost = 6;
  std::string names;
  for (size_t i = 0; i < std::min(directories.size(), kMost); ++i) {
    names += (i == 0 ? "" : ", ") + printable(directories[i]);
  }
  return directories.size() > kMost
             ? fmt::format("{} and {} more", names, directories.size() - kMost)
             : names;
}

SeveralSplits::SeveralSplits(std::string root, std::vector<Split> splits,
                             const DirectoryContents& contents)
    : Error(ErrorKind::usage, question(root, splits) + reading_of(root, splits, contents)),
      other_reading_(reading_of(root, splits, contents)),
      root_(std::move(root)),
      splits_(std::move(splits)) {}

}  // namespace stoker
