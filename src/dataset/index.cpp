// SPDX-License-Identifier: Apache-2.0
#include "dataset/index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "dataset/index_trust.h"
#include "dataset/split_words.h"
#include "dataset/splits.h"
#include "os/file_system.h"
#include "os/node.h"
#include "os/open_beneath.h"
#include "os/page_cache.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

/// Takes the first of "a::b" off.
std::string take_first(std::string& inner) {
  const size_t end = inner.find("::");
  std::string first = inner.substr(0, end);
  inner = end == inner.npos ? "" : inner.substr(end + 2);
  return first;
}

bool is_directory_name(std::string_view name) {
  return !name.empty() && !name.starts_with('.') && name.find('/') == name.npos;
}

/// A sub-directory that a name in the dataset, not the user, may have led to: through no link of
/// somebody else to what is ours alone.
fs::path enter(const fs::path& directory, const std::string& name) {
  OpenBeneath beneath(directory.string());
  ::close(beneath.open(name, O_PATH | O_DIRECTORY | O_CLOEXEC, Links::trusted));
  return fs::canonical(directory / name);
}

[[noreturn]] void refuse_split(const fs::path& directory, const std::string& name,
                               const std::vector<Split>& splits) {
  throw Error(ErrorKind::not_found,
              fmt::format("{}::{}: no such split; there {} {}", printable(directory.string()),
                          printable(name), splits.size() == 1 ? "is only" : "are",
                          names_of_splits(directory.string(), splits)));
}

/// Goes to the only sub-directory with data, where there is one: `wanted` is what is named next.
bool enter_data(fs::path& directory, const std::string& wanted) {
  const std::string below = only_data_directory(real_file_system(), directory.string());
  if (below.empty()) return false;
  if (is_split_name(below) && split_word_of(below) != wanted) {
    if (wanted == kAllSplits) return false;
    if (is_split_word(wanted)) refuse_split(directory, wanted, {{below, below, {}, {}}});
  }
  fs::path next = enter(directory, below);
  const auto [above, rest] =
      std::mismatch(next.begin(), next.end(), directory.begin(), directory.end());
  if (above == next.end()) return false;  // a link to itself, or up
  directory = std::move(next);
  return true;
}

/// Goes from a directory to the split of it that is meant, as far as that is named.
void choose_split(fs::path& directory, DatasetPaths& paths) {
  constexpr int kDeepest = 8;  // links may lead in circles
  FileSystem& files = real_file_system();
  std::error_code ignored;
  int depth = 0;
  while (!paths.inner.empty()) {
    std::string rest = paths.inner;
    const std::string first = take_first(rest);
    if (is_directory_name(first) && fs::is_directory(directory / first, ignored)) {
      directory = enter(directory, first);
      paths.inner = rest;
      continue;
    }
    if (depth++ < kDeepest && enter_data(directory, first)) {
      // "val" of "val2017"
      if (is_split_name(directory.filename().string()) &&
          split_word_of(directory.filename().string()) == first) {
        paths.inner = rest;
      }
      continue;
    }
    const std::vector<Split> splits = find_splits(files, directory.string());
    if (splits.size() < 2 && first != kAllSplits) return;
    const Split* split = find_split(splits, first);
    if (split == nullptr && first != kAllSplits) refuse_split(directory, first, splits);
    paths.inner = rest;
    if (split != nullptr && !split->directory.empty()) {
      directory = enter(directory, split->directory);
      continue;
    }
    paths.split = split != nullptr && splits.size() > 1 ? split->name : std::string(kAllSplits);
    return;
  }
  while (depth++ < kDeepest && enter_data(directory, "")) {
  }
}

}  // namespace

DatasetPaths DatasetPaths::of(const std::string& path) {
  std::error_code failed;
  DatasetPaths paths;
  paths.path = path;
  fs::path real = fs::canonical(path, failed);
  // Names of files may have colons as well: the longest one that exists counts.
  for (size_t at = path.rfind("::"); failed && at != path.npos && at > 0;
       at = path.rfind("::", at - 1)) {
    real = fs::canonical(path.substr(0, at), failed);
    if (!failed) paths.inner = path.substr(at + 2);
  }
  if (failed) throw system_error(path, "cannot open", failed.value());
  if (fs::is_directory(real)) {
    choose_split(real, paths);
    paths.root = real.string();
  } else {
    paths.root = real.parent_path().string();
    paths.file = real.filename().string();
  }
  paths.beside = (fs::path(paths.root) / paths.index_in_copy()).string();
  // All splits as one have the place of a directory that is one dataset.
  if (!paths.split.empty() && paths.split != kAllSplits) {
    paths.beside =
        fmt::format("{}/{}/::{}", paths.root, kIndexDirectory, percent_escape(paths.part(), "/"));
  }
  std::string whole = real.string();
  const std::string part = paths.split == kAllSplits ? paths.inner : paths.part();
  if (!part.empty()) whole += "::" + part;
  paths.cache =
      (fs::path(cache_directory()) / "stoker" / "index" / fmt::format("{:016x}", hash64(whole)))
          .string();
  return paths;
}

std::string DatasetPaths::part() const { return part_name(split, inner); }

std::string DatasetPaths::index_in_copy() const {
  std::string place = kIndexDirectory;
  if (!file.empty()) place += "/" + file;
  if (inner.empty()) return place;
  return place + (file.empty() ? "/::" : "::") + percent_escape(inner, "/");
}

namespace {

/// "a.tar" of "a.tar.000.01234567.seg".
std::string shard_of_segment(std::string_view file) {
  for (int i = 0; i < 3; ++i) file = file.substr(0, file.rfind('.'));
  return percent_unescape(file);
}

}  // namespace

void DatasetPaths::refuse_merged(const Manifest& manifest) const {
  // What `pack` wrote belongs together, and a list says what does.
  if (!file.empty() || !split.empty() || !manifest.origin.empty() || manifest.listed) return;
  std::vector<std::string> names;
  if (manifest.format == "folder") {
    std::set<std::string> words;
    for (const std::string& name : manifest.schema.classes) words.insert(split_word_of(name));
    words.erase("");
    if (words.size() < 2) return;
  } else {
    for (const SegmentEntry& segment : manifest.segments) {
      names.push_back(shard_of_segment(segment.file));
    }
    names.erase(std::unique(names.begin(), names.end()), names.end());
    if (splits_of_files(names).size() < 2) return;
  }
  std::vector<Split> splits = find_splits(real_file_system(), root);
  if (splits.size() < 2) return;
  const DirectoryContents contents = look_around(real_file_system(), root, splits);
  throw SeveralSplits(root, std::move(splits), contents);
}

void DatasetPaths::refuse_unfinished() const {
  std::error_code ignored;
  if (!file.empty() || fs::exists(fs::path(beside) / kManifestName, ignored)) return;
  // A split has its plan one level up.
  const fs::path above = fs::path(root).parent_path() / kIndexDirectory;
  const bool split = fs::is_directory(beside, ignored) && fs::exists(above / kPackPlan, ignored);
  if (!split && !fs::exists(fs::path(beside) / kPackPlan, ignored)) return;
  throw Error(ErrorKind::corrupt,
              fmt::format("{}: is an unfinished pack: run the same stoker pack again to finish it",
                          printable(path)));
}

void DatasetPaths::use_list(const std::string& list) {
  const std::optional<FileInfo> info = real_file_system().info(list, true);
  if (!info) throw system_error(list, "cannot open", ENOENT);
  // Another list, or another state of it, is another index.
  const uint64_t which = mix64(hash64(fs::canonical(list).string()) ^
                               mix64(info->size ^ static_cast<uint64_t>(info->modified_ns)));
  cache += fmt::format("-{:016x}", which);
  beside.clear();
}

std::optional<std::string> DatasetPaths::existing_index() const {
  for (const std::string& directory : {beside, cache}) {
    if (directory.empty()) continue;
    const std::string manifest = directory + "/" + kManifestName;
    if (::faccessat(AT_FDCWD, manifest.c_str(), R_OK, AT_EACCESS) != 0) continue;
    const bool trusted = directory == beside ? is_trusted_index(root, directory, IndexUse::read)
                                             : is_own_cache(directory);
    if (trusted) return directory;
  }
  return std::nullopt;
}

Index::Index(const std::string& directory)
    : Index(directory, Manifest::read((fs::path(directory) / kManifestName).string())) {}

Index::Index(std::string directory, Manifest manifest)
    : directory_(std::move(directory)),
      manifest_(std::move(manifest)),
      segments_(manifest_.segments.size()),
      row_indexes_(manifest_.segments.size()) {
  first_.push_back(0);
  for (const SegmentEntry& segment : manifest_.segments) {
    first_.push_back(first_.back() + segment.samples);
  }
}

Index::~Index() {
  for (auto& slot : segments_) delete slot.load(std::memory_order_acquire);
  for (auto& slot : row_indexes_) delete slot.load(std::memory_order_acquire);
}

Index::Place Index::place(uint64_t sample) const {
  if (sample >= size()) {
    throw Error(ErrorKind::usage, fmt::format("no sample {}: there are {}", sample, size()));
  }
  const auto after = std::upper_bound(first_.begin(), first_.end(), sample);
  const auto segment = static_cast<uint32_t>(after - first_.begin() - 1);
  return {segment, sample - first_[segment]};
}

/// What the manifest says about a segment; where that is gone because the dataset was indexed again
/// meanwhile, what the new manifest says about the same samples.
SegmentEntry Index::entry_in_force(uint32_t number) const {
  const SegmentEntry& entry = manifest_.segments[number];
  std::error_code ignored;
  if (fs::exists(fs::path(directory_) / entry.file, ignored)) return entry;
  const Manifest now = Manifest::read((fs::path(directory_) / kManifestName).string());
  const bool same =
      std::equal(manifest_.segments.begin(), manifest_.segments.end(), now.segments.begin(),
                 now.segments.end(), [](const SegmentEntry& a, const SegmentEntry& b) {
                   return a.samples == b.samples && a.bytes == b.bytes;
                 });
  return same ? now.segments[number] : entry;
}

const Index::Opened& Index::opened(uint32_t number) const {
  std::atomic<const Opened*>& slot = segments_[number];
  const Opened* known = slot.load(std::memory_order_acquire);
  if (known != nullptr) return *known;

  const SegmentEntry entry = entry_in_force(number);
  const std::string path = (fs::path(directory_) / entry.file).string();
  auto opened = std::make_unique<Opened>(path);
  opened->path = path;
  if (opened->segment.header_crc() != entry.header_crc ||
      opened->segment.samples() != entry.samples) {
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: not the segment that {} speaks of: run stoker index",
                            printable(path), kManifestName));
  }
  const std::vector<Field>& local = opened->segment.fields();
  for (const Field& field : schema().fields) {
    const auto same = std::find_if(local.begin(), local.end(),
                                   [&](const Field& other) { return other.name == field.name; });
    opened->local_fields.push_back(
        same == local.end() ? std::nullopt
                            : std::optional(static_cast<uint32_t>(same - local.begin())));
  }
  if (slot.compare_exchange_strong(known, opened.get(), std::memory_order_acq_rel)) {
    return *opened.release();
  }
  return *known;
}

const Segment& Index::segment(uint32_t number) const { return opened(number).segment; }

const RowIndexFile* Index::row_indexes(uint32_t segment) const {
  std::atomic<const RowIndexes*>& slot = row_indexes_[segment];
  const RowIndexes* known = slot.load(std::memory_order_acquire);
  if (known != nullptr) return known->file.get();

  const Opened& whose = opened(segment);
  auto made = std::make_unique<RowIndexes>();
  try {
    const std::string path = row_index_path(whose.path);
    if (whose.segment.depth() == Depth::full) {
      made->file =
          std::make_unique<RowIndexFile>(path, whose.segment.header_crc(), whose.segment.samples());
      bring_into_page_cache(path);  // small against the photos, and read in any order
    }
  } catch (const Error&) {  // a photo can be decoded without
  }
  if (slot.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) {
    return made.release()->file.get();
  }
  return known->file.get();
}

std::optional<uint32_t> Index::local_field(uint32_t segment, uint32_t field) const {
  return opened(segment).local_fields.at(field);
}

std::string Index::key(uint64_t sample) const {
  const Place where = place(sample);
  return segment(where.segment).key(where.sample);
}

std::optional<uint64_t> Index::find(std::string_view key) const {
  const uint64_t hash = hash64(key);
  std::vector<uint64_t> candidates;
  for (uint32_t i = 0; i < segments_.size(); ++i) {
    candidates.clear();
    const Segment& here = segment(i);
    here.find_hash(hash, candidates);
    for (const uint64_t sample : candidates) {
      if (here.key(sample) == key) return first_[i] + sample;
    }
  }
  return std::nullopt;
}

}  // namespace stoker
