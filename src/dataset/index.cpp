// SPDX-License-Identifier: Apache-2.0
#include "dataset/index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "dataset/index_trust.h"
#include "os/file_system.h"
#include "os/node.h"
#include "os/page_cache.h"

namespace stoker {
namespace fs = std::filesystem;

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
    paths.root = real.string();
    paths.beside = (real / kIndexDirectory).string();
  } else {
    paths.root = real.parent_path().string();
    paths.file = real.filename().string();
    paths.beside = (real.parent_path() / kIndexDirectory / real.filename()).string();
  }
  std::string whole = real.string();
  if (!paths.inner.empty()) {
    whole += "::" + paths.inner;
    const std::string name = "::" + percent_escape(paths.inner, "/");
    paths.beside += paths.file.empty() ? "/" + name : name;
  }
  paths.cache =
      (fs::path(cache_directory()) / "stoker" / "index" / fmt::format("{:016x}", hash64(whole)))
          .string();
  return paths;
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
