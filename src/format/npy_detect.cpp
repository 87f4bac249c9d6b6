// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "dataset/split_words.h"
#include "dataset/splits.h"
#include "format/npy.h"
#include "format/npy_arrays.h"
#include "format/numbered_name.h"
#include "format/shard_directory.h"

namespace stoker {
namespace {

// Fields are few; a directory with more .npy files that pack did not write is one of samples.
constexpr size_t kMostFields = 64;
constexpr size_t kMostLoose = 64;

constexpr const char* kClassesFile = "batches.meta.txt";

bool has_array_name(std::string_view name) {
  if (name.ends_with(".gz")) name.remove_suffix(3);
  return name.ends_with(".npy") || name.ends_with(".npz") ||
         name.find("-ubyte") != std::string_view::npos || name.starts_with("data_batch_") ||
         name == "test_batch.bin";
}

std::string_view stem_of(std::string_view name) { return name.substr(0, name.find('.')); }

/// Whether names alone say that .npy files are samples: very many of them, numbers, or with other
/// files beside them that have the same name or contents of their own.
bool named_like_samples(const ShardDirectory& top) {
  size_t arrays = 0;
  std::set<std::string_view> stems;
  for (const std::string& name : top.shards) {
    if (!name.ends_with(".npy")) continue;
    if (array_name(name).field == kNpyKeys) return false;
    ++arrays;
    const std::string_view stem = stem_of(name);
    if (stem.find_first_not_of("0123456789") == std::string_view::npos) return true;
    stems.insert(stem);
  }
  return arrays > kMostFields ||
         (arrays > 0 &&
          std::any_of(top.loose.begin(), top.loose.end(), [&](const std::string& name) {
            return !may_describe(name) || stems.contains(stem_of(name));
          }));
}

/// Files that belong together, by group.
using Groups = std::map<std::string, std::vector<ArrayFile>>;

bool is_key_file(const ArrayFile& file) {
  return file.arrays.size() == 1 && file.arrays[0].field == kNpyKeys &&
         file.arrays[0].dtype == DType::unknown;
}

/// A file by whose name it should be an array, but whose bytes say otherwise.
bool is_broken(const ArrayFile& file) { return file.arrays.empty(); }

std::vector<std::string> fields_of(const std::vector<ArrayFile>& files) {
  std::vector<std::string> fields;
  for (const ArrayFile& file : files) {
    for (const RowArray& array : file.arrays) fields.push_back(array.field);
  }
  std::sort(fields.begin(), fields.end());
  return fields;
}

/// Whether all arrays have the same number of rows, as far as their files say.
bool share_rows(const std::vector<ArrayFile>& files) {
  std::optional<uint64_t> rows;
  for (const ArrayFile& file : files) {
    for (const RowArray& array : file.arrays) {
      if (rows.value_or(array.rows) != array.rows) return false;
      rows = array.rows;
    }
  }
  return true;
}

std::string without_digits(std::string name) {
  for (char& c : name) {
    if (c >= '0' && c <= '9') c = '#';
  }
  return name;
}

/// Whether .npy files are rather samples than fields: three or more of one dtype and shape that
/// differ in a number, or all that there are.
bool look_like_samples(const std::vector<ArrayFile>& files) {
  std::map<std::string, size_t> alike, numbered;
  for (const ArrayFile& file : files) {
    if (file.arrays.size() != 1) return false;
    const RowArray& array = file.arrays[0];
    const std::string kind =
        fmt::format("{} {} {}", name_of(array.dtype), array.rows, fmt::join(array.shape, ","));
    ++alike[kind];
    // Recordings differ in length: there the number of dimensions has to do.
    ++numbered[fmt::format("{} {} {}", name_of(array.dtype), array.shape.size(),
                           without_digits(file.path))];
  }
  const auto many = [](const auto& entry) { return entry.second >= 3; };
  return (alike.size() == 1 && many(*alike.begin())) ||
         std::any_of(numbered.begin(), numbered.end(), many);
}

/// Whether the groups are a dataset: each of them whole, and all with the same fields.
bool are_dataset(const Groups& groups) {
  const auto any = [&](bool (*is)(const ArrayFile&)) {
    return std::any_of(groups.begin(), groups.end(), [&](const auto& group) {
      return std::any_of(group.second.begin(), group.second.end(), is);
    });
  };
  if (any(is_key_file)) return true;  // whatever may be wrong with the others: the scan says it
  if (any(is_broken)) return false;
  const auto& [first_name, first] = *groups.begin();
  const bool separate = std::all_of(first.begin(), first.end(), [](const ArrayFile& file) {
    return !file.batch && !file.archive && file.path.ends_with(".npy");
  });
  // Samples of a folder may have several .npy files each: only keys tell that these are not such.
  if (separate && (groups.size() > 1 || look_like_samples(first))) return false;
  const std::vector<std::string> fields = fields_of(first);
  for (const auto& [name, files] : groups) {
    if (fields_of(files) != fields || !share_rows(files)) return false;
  }
  return std::adjacent_find(fields.begin(), fields.end()) == fields.end();
}

/// A part of a group: the one with the keys first, then by name.
Part part_of(std::vector<ArrayFile> files) {
  std::sort(files.begin(), files.end(), [](const ArrayFile& a, const ArrayFile& b) {
    const bool keys_a = is_key_file(a), keys_b = is_key_file(b);
    return keys_a != keys_b ? keys_a : a.path < b.path;
  });
  Part part;
  part.shard = files.front().path;
  for (const ArrayFile& file : files) {
    if (&file != &files.front()) part.beside.push_back(file.path);
    if (file.compression != Compression::none) part.compression = file.compression;
  }
  return part;
}

/// The names of CIFAR-10's classes.
std::vector<std::string> read_classes(const Source& source) {
  const std::string path = source.root + "/" + kClassesFile;
  const auto info = source.file_system->info(path, true);
  constexpr uint64_t kLongest = 65536;
  if (!info || info->kind != FileKind::file || info->size > kLongest) return {};
  std::string text(info->size, '\0');
  text.resize(source.file_system->open(path)->read_at(0, std::as_writable_bytes(std::span(text))));
  std::vector<std::string> classes;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) classes.push_back(std::move(line));
    at = end + 1;
  }
  return classes;
}

Layout layout_of(const Source& source, const Groups& groups) {
  Layout layout;
  bool batches = false;
  for (const auto& [name, files] : groups) {
    batches = batches || files.front().batch;
    layout.parts.push_back(part_of(files));
  }
  if (batches) layout.classes = read_classes(source);
  return layout;
}

/// Which set a group of MNIST or CIFAR-10 belongs to; empty where that is no question.
std::string_view set_of(const std::string& group, const ArrayFile& file) {
  const bool idx = !file.batch && !file.archive && !file.path.ends_with(".npy");
  if (file.batch && group.starts_with("data_batch")) return "train";
  if (file.batch && group.starts_with("test_batch")) return "test";
  if (idx && group == "t10k") return "test";
  if (idx && (group == "train" || group == "test")) return group;
  return {};
}

/// Leaves the groups of the set that is meant. Throws Error where that is not clear.
void choose_set(const Source& source, Groups& groups) {
  std::set<std::string> sets;
  for (const auto& [name, files] : groups) {
    sets.emplace(files.front().archive ? source.inner : set_of(name, files.front()));
  }
  sets.erase("");
  const auto error = [&](ErrorKind kind, std::string_view what) {
    const std::string path = source.file.empty() ? source.root : source.root + "/" + source.file;
    throw Error(kind, fmt::format("{}: {}", printable(path), what));
  };
  if (source.inner.empty() && sets.size() > 1) {
    error(ErrorKind::usage,
          fmt::format("has several sets: {}; say which one, as in ::{}", fmt::join(sets, ", "),
                      sets.contains("train") ? "train" : *sets.begin()));
  }
  if (source.inner.empty()) return;
  if (!sets.contains(source.inner)) {
    error(ErrorKind::not_found,
          fmt::format("has no set '{}'{}{}", printable(source.inner),
                      sets.empty() ? "" : "; there are ", fmt::join(sets, ", ")));
  }
  std::erase_if(groups, [&](const auto& group) {
    const ArrayFile& file = group.second.front();
    return !file.archive && set_of(group.first, file) != source.inner;
  });
}

/// Names arrays that share their rows, for whoever has to choose: "x_train,y_train (40); …".
std::string arrays_by_rows(const std::vector<ArrayFile>& files) {
  std::map<uint64_t, std::string> by_rows;
  for (const ArrayFile& file : files) {
    for (const RowArray& array : file.arrays) {
      std::string& names = by_rows[array.rows];
      if (names.size() < 200) names += (names.empty() ? "" : ",") + array.field;
    }
  }
  std::string text;
  for (auto each = by_rows.rbegin(); each != by_rows.rend() && text.size() < 1000; ++each) {
    text +=
        fmt::format("{}{} ({})", text.empty() ? "" : "; ", printable(each->second), each->first);
  }
  return text;
}

/// The other half of a set in MNIST's format: its labels, or its images.
void add_partner(const Source& source, Groups& groups) {
  std::vector<ArrayFile>& files = groups.begin()->second;
  const std::string name = files.front().path;
  for (const auto& [mine, other] : {std::pair{"images", "labels"}, {"labels", "images"}}) {
    const size_t at = name.find(mine);
    if (at == std::string::npos || array_name(name).field != (mine[0] == 'i' ? "image" : "label")) {
      continue;
    }
    for (const char* dimensions : {"idx1", "idx3"}) {
      std::string partner = name;
      partner.replace(at, std::string_view(mine).size(), other);
      const size_t idx = partner.find("idx");
      if (idx == std::string::npos) continue;
      partner.replace(idx, 4, dimensions);
      if (!source.file_system->info(source.root + "/" + partner, true)) continue;
      auto file = read_array_file(source, partner);
      if (file && file->group == files.front().group) files.push_back(std::move(*file));
      return;
    }
  }
}

/// Throws Error where arrays of an archive are those of several splits and none was named.
void ask_for_split(const Source& source, const ArrayFile& file) {
  if (!file.archive || !source.inner.empty() || source.split == kAllSplits) return;
  std::vector<std::string> names;
  for (const RowArray& array : file.arrays) names.push_back(array.field);
  std::vector<std::pair<uint64_t, std::string>> choices;  // rows, fields
  for (const auto& [split, members] : group_by_split(names)) {
    std::string fields;
    for (const size_t i : members) fields += (fields.empty() ? "" : ",") + names[i];
    choices.emplace_back(file.arrays[members.front()].rows, printable(fields));
  }
  if (choices.empty()) return;
  std::sort(choices.rbegin(), choices.rend());
  std::string list;
  for (const auto& [rows, fields] : choices) {
    list += fmt::format("{}{} ({})", list.empty() ? "" : "; ", fields, rows);
  }
  const std::string path = printable(source.root + "/" + file.path);
  throw Error(ErrorKind::usage, fmt::format("{}: its arrays are of several splits: {}; name those "
                                            "that are meant, as in {}::{}",
                                            path, list, path, choices.front().second));
}

/// Throws Error where an archive of splits has no array that can be read: all of them compressed.
void refuse_compressed(const Source& source, const ArrayFile& file) {
  if (!file.archive || !file.arrays.empty() || file.faults.empty()) return;
  std::vector<std::string> names;
  for (const Fault& fault : file.faults) names.emplace_back(stem_of(fault.field));
  if (source.inner.empty() && group_by_split(names).empty()) return;  // may be a sample
  const Fault& first = file.faults.front();
  throw Error(ErrorKind::unsupported,
              fmt::format("{}: {} {}", printable(source.root + "/" + file.path),
                          printable(first.field), first.cause));
}

std::optional<Layout> detect_file(const Source& source) {
  const auto info = source.file_system->info(source.root + "/" + source.file, true);
  if (!info || info->kind != FileKind::file) return std::nullopt;
  Groups groups;
  try {
    auto file = read_array_file(source, source.file);
    if (!file) return std::nullopt;
    const std::string group = file->group;
    groups[group].push_back(std::move(*file));
    if (source.file.find("-ubyte") != std::string::npos) add_partner(source, groups);
  } catch (const Error& error) {
    if (!has_array_name(source.file)) return std::nullopt;
    throw Error(error.kind(), fmt::format("{}/{}: {}", printable(source.root),
                                          printable(source.file), error.what()));
  }
  ask_for_split(source, groups.begin()->second.front());
  if (const std::vector<ArrayFile>& files = groups.begin()->second; !share_rows(files)) {
    const bool archive = files.front().archive;
    throw Error(archive ? ErrorKind::usage : ErrorKind::unsupported,
                fmt::format("{}/{}: its arrays do not share the first dimension, so they are no "
                            "fields of the same samples: {}{}",
                            printable(source.root), printable(source.file), arrays_by_rows(files),
                            archive ? "; name those that are meant, as in ::x_train,y_train" : ""));
  }
  choose_set(source, groups);
  return layout_of(source, groups);
}

/// Takes out the compressed files that are there decompressed as well, as torchvision leaves those
/// of MNIST. Returns how many.
size_t leave_out_compressed(std::vector<std::string>& names) {
  constexpr std::string_view kGzip = ".gz";
  const std::set<std::string, std::less<>> all(names.begin(), names.end());
  return std::erase_if(names, [&](std::string_view name) {
    return name.ends_with(kGzip) && all.contains(name.substr(0, name.size() - kGzip.size()));
  });
}

std::optional<Layout> detect_directory(const Source& source) {
  ShardDirectory top = look_at_shards(source, has_array_name, kMostLoose);
  if (top.deep || top.images > 0 || named_like_samples(top)) return std::nullopt;
  top.other_files += leave_out_compressed(top.shards);
  const bool by_name = !top.shards.empty();
  if (!by_name && top.more_loose) return std::nullopt;
  Groups groups;
  size_t found = 0;
  for (const std::string& name : by_name ? top.shards : top.loose) {
    try {
      auto file = read_array_file(source, name);
      if (!file) continue;
      ++found;
      const std::string group = file->group;
      groups[group].push_back(std::move(*file));
    } catch (const Error& error) {
      if (error.os_error() != 0) throw;
      if (error.kind() == ErrorKind::not_found) {
        throw Error(error.kind(), fmt::format("{}/{}: {}", printable(source.root), printable(name),
                                              error.what()));
      }
      ArrayFile broken;
      broken.path = name;
      if (by_name) groups[array_name(name).group].push_back(std::move(broken));
    }
  }
  if (groups.empty()) return std::nullopt;
  refuse_compressed(source, groups.begin()->second.front());
  ask_for_split(source, groups.begin()->second.front());
  if (!are_dataset(groups)) return std::nullopt;
  choose_set(source, groups);
  Layout layout = layout_of(source, groups);
  layout.faults = std::move(top.faults);
  find_series_gaps(top.shards, layout.faults);
  layout.hidden = top.hidden;
  layout.unlisted = top.other_files - (by_name ? 0 : found);
  return layout;
}

}  // namespace

std::optional<Layout> detect_npy(const Source& source) {
  if (!source.list.empty()) return std::nullopt;  // a list names the files of a folder
  return source.file.empty() ? detect_directory(source) : detect_file(source);
}

}  // namespace stoker
