// SPDX-License-Identifier: Apache-2.0
#include "dataset/shard_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "base/error.h"
#include "base/text.h"
#include "dataset/inflating_file.h"
#include "dataset/truncation.h"
#include "os/node.h"
#include "os/open_file_limit.h"

namespace stoker {
namespace {

/// Shards that all readers of this process keep open.
std::atomic<uint64_t> kept_by_all{0};

bool is_same(const FileInfo& a, const FileInfo& b) {
  return a.device == b.device && a.inode == b.inode && a.size == b.size &&
         a.modified_ns == b.modified_ns;
}

}  // namespace

ShardFiles::ShardFiles(FileSystem& file_system, std::vector<std::string> roots, size_t limit,
                       const ViewLimits& views, std::optional<StagedRoot> staged)
    : file_system_(file_system),
      roots_(std::move(roots)),
      limit_(limit),
      views_(views),
      staged_(std::move(staged)) {
  for (const std::string& root : roots_) beneath_.push_back(file_system_.beneath(root));
  if (staged_) beneath_staged_ = file_system_.beneath(staged_->data);
}

ShardFiles::~ShardFiles() { kept_by_all -= kept_.size(); }

uint64_t ShardFiles::news() {
  constexpr int64_t kPause = 1'000'000'000;
  const int64_t now = monotonic_ns();
  int64_t looked = looked_ns_.load(std::memory_order_relaxed);
  if (looked != 0 && now - looked < kPause) return news_.load(std::memory_order_relaxed);
  if (looked_ns_.compare_exchange_strong(looked, now)) {
    const std::optional<FileInfo> info = file_system_.info(staged_->arrivals, true);
    news_ = info ? static_cast<uint64_t>(info->modified_ns) : 0;
  }
  return news_.load(std::memory_order_relaxed);
}

std::unique_ptr<ReadableFile> ShardFiles::open_staged(const std::string& path,
                                                      const ExpectedFile& expected) {
  try {
    std::unique_ptr<ReadableFile> file = beneath_staged_->open(path, Links::inside);
    const FileInfo info = file->info();
    return info.kind == FileKind::file && info.size == expected.size ? std::move(file) : nullptr;
  } catch (const Error&) {
    return nullptr;  // the source has it
  }
}

namespace {

[[noreturn]] void vanished(const std::string& whole, int os_error) {
  throw Error(ErrorKind::not_found,
              fmt::format("{}: was there when it was indexed and has vanished: put it back, "
                          "or run stoker index",
                          printable(whole)),
              os_error);
}

}  // namespace

void ShardFiles::check(const std::string& whole, const FileInfo& info,
                       const ExpectedFile& expected) {
  if (info.kind != FileKind::file || info.size != expected.size) {
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: has changed since it was indexed ({} bytes then, {} now): "
                            "run stoker index",
                            printable(whole), expected.size, info.size));
  }
  if (expected.modified_ns != 0 && info.modified_ns != expected.modified_ns) {
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: was modified after it was indexed, and the index has no "
                            "checksums to compare: run stoker index",
                            printable(whole)));
  }
}

std::unique_ptr<ReadableFile> ShardFiles::open_once(const std::string& path,
                                                    const ExpectedFile& expected, Links links) {
  for (size_t i = 0; i < roots_.size(); ++i) {
    const std::string whole = roots_[i] + "/" + path;
    std::unique_ptr<ReadableFile> file;
    try {
      file = beneath_[i]->open(path, links);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::not_found) throw;
      if (i + 1 < roots_.size()) continue;
      vanished(whole, error.os_error());
    }
    check(whole, file->info(), expected);
    return file;
  }
  throw Error(ErrorKind::usage, "no root to look for shards in");
}

bool ShardFiles::untouched(const std::string& path, const ExpectedFile& expected,
                           int64_t modified_ns, int64_t until_ns) {
  for (size_t i = 0; i < roots_.size(); ++i) {
    const std::string whole = roots_[i] + "/" + path;
    const std::optional<FileInfo> info = file_system_.info(whole, true);
    if (!info && i + 1 == roots_.size()) vanished(whole, ENOENT);
    if (!info) continue;
    check(whole, *info, expected);
    if (modified_ns != 0 && info->modified_ns == modified_ns) return true;
    // `cp -a` and `tar x` give a file an old time, but not its inode.
    return std::max(info->modified_ns, info->changed_ns) <= until_ns;
  }
  return false;
}

bool ShardFiles::is_as_seen(const std::string& path, const std::optional<FileInfo>& now) {
  const std::lock_guard lock(mutex_);
  const auto seen = seen_.find(path);
  if (seen == seen_.end()) return false;
  if (now && is_same(seen->second, *now)) return true;
  for (auto next = kept_.begin(); next != kept_.end();) {
    const Place other = next++;
    if (other->path == path && !other->staged) forget(other);
  }
  return false;
}

bool ShardFiles::is_staged(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return std::any_of(kept_.begin(), kept_.end(),
                     [&](const Kept& kept) { return kept.path == path && kept.staged; });
}

void ShardFiles::see(const std::string& path, const FileInfo& info) {
  const std::lock_guard lock(mutex_);
  const auto [seen, is_new] = seen_.try_emplace(path, info);
  if (is_new || is_same(seen->second, info)) return;
  seen->second = info;
  changes_.fetch_add(1, std::memory_order_release);
}

std::optional<FileInfo> ShardFiles::look(const Segment& segment, uint32_t number) {
  const std::string path = segment.shard(number).path;
  if (staged_) {
    open(segment, number);
    if (is_staged(path)) return std::nullopt;
  }
  std::optional<FileInfo> info;
  for (size_t i = 0; i < roots_.size() && !info; ++i) {
    info = file_system_.info(roots_[i] + "/" + path, true);
  }
  return is_as_seen(path, info) ? info : open(segment, number)->info();
}

bool ShardFiles::untouched(const Segment& segment, uint32_t number) {
  const std::optional<FileInfo> info = look(segment, number);
  if (!info) return true;  // the copy was compared with the index while it was made
  if (segment.depth() == Depth::structure) return true;  // open() has compared the times
  const int64_t indexed = segment.shard(number).modified_ns;
  if (indexed != 0) return info->modified_ns == indexed;
  // `pack` records no time, but writes the segment of a shard after the shard. File systems count
  // time in steps: what has the same time may have been written after it.
  return info->modified_ns < segment.written_ns();
}

void ShardFiles::refuse_truncated(const Segment& segment, uint32_t number, const Shard& shard) {
  if (shard.compression != Compression::none) return;
  for (const std::string& root : roots_) {
    const std::string whole = root + "/" + shard.path;
    const std::optional<FileInfo> info = file_system_.info(whole, true);
    if (!info) continue;
    if (info->kind != FileKind::file || info->size >= shard.size) return;
    const std::lock_guard lock(mutex_);
    auto& [size, words] = truncated_[shard.path];
    if (words.empty() || size != info->size) {
      size = info->size;
      words = truncation_in_words(segment, number, size);
    }
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: {}: copy it again, or run stoker index for what is left",
                            printable(whole), words));
  }
}

void ShardFiles::forget(Place place) {
  by_name_.erase(place->name);
  kept_.erase(place);
  --kept_by_all;
}

void ShardFiles::keep(Kept kept) {
  const auto known = by_name_.find(kept.name);
  if (known != by_name_.end()) forget(known->second);
  kept_.push_front(std::move(kept));
  by_name_[kept_.front().name] = kept_.begin();
  // Each reader has at least the one that it reads; those of all have a share of the descriptors.
  const bool too_many = ++kept_by_all > open_file_limit() / 3;
  if (kept_.size() > (too_many ? 1 : limit_)) forget(std::prev(kept_.end()));
  // A view keeps many rows: those that were read before go.
  const std::string& views_of = kept_.front().views_of;
  for (auto next = kept_.begin(); !views_of.empty() && next != kept_.end();) {
    const Place other = next++;
    if (!other->views_of.empty() && other->views_of != views_of) forget(other);
  }
}

std::shared_ptr<ReadableFile> ShardFiles::open(const Segment& segment, uint32_t number) {
  const Shard shard = segment.shard(number);
  const bool is_view = shard.compression == Compression::tiled;
  // No path has a NUL in it. A view is read from the segment only where it is not open already.
  const std::string views_of =
      is_view ? fmt::format("{}{}{:08x}", shard.path, '\0', segment.header_crc()) : "";
  const std::string name = is_view ? fmt::format("{}.{}", views_of, number) : shard.path;
  const uint64_t news = staged_ ? this->news() : 0;
  std::shared_ptr<ReadableFile> file;
  {
    const std::lock_guard lock(mutex_);
    const auto known = by_name_.find(name);
    if (known != by_name_.end()) {
      kept_.splice(kept_.begin(), kept_, known->second);
      file = known->second->file;
      if (known->second->staged || known->second->news == news) return file;
      known->second->news = news;  // whoever comes now need not look as well
    }
  }
  const int64_t modified = segment.depth() == Depth::structure ? shard.modified_ns : 0;
  const ExpectedFile expected{shard.size, modified};
  std::unique_ptr<ReadableFile> nearer = staged_ ? open_staged(shard.path, expected) : nullptr;
  const bool staged = nearer != nullptr;
  if (file != nullptr && !staged) return file;
  if (!staged) {
    try {
      nearer = open_once(shard.path, expected, Links::trusted);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::corrupt) refuse_truncated(segment, number, shard);
      throw;
    }
    see(shard.path, nearer->info());
  }
  file = inflate(std::move(nearer), roots_.front() + "/" + shard.path, shard.compression,
                 segment.view(number), views_);
  const std::lock_guard lock(mutex_);
  const auto known = by_name_.find(name);
  // Another thread was quicker.
  if (known != by_name_.end() && (known->second->staged || !staged)) return known->second->file;
  keep({shard.path, name, views_of, file, news, staged});
  return file;
}

}  // namespace stoker
