// SPDX-License-Identifier: Apache-2.0
#include "dataset/shard_files.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "dataset/inflating_file.h"
#include "os/node.h"

namespace stoker {

ShardFiles::ShardFiles(FileSystem& file_system, std::vector<std::string> roots, size_t limit,
                       std::optional<StagedRoot> staged)
    : file_system_(file_system),
      roots_(std::move(roots)),
      limit_(limit),
      staged_(std::move(staged)) {}

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
    std::unique_ptr<ReadableFile> file = file_system_.open(staged_->data + "/" + path);
    const FileInfo info = file->info();
    return info.kind == FileKind::file && info.size == expected.size ? std::move(file) : nullptr;
  } catch (const Error&) {
    return nullptr;  // the source has it
  }
}

std::unique_ptr<ReadableFile> ShardFiles::open_once(const std::string& path,
                                                    const ExpectedFile& expected) {
  if (path.starts_with('/') || ("/" + path + "/").find("/../") != std::string::npos) {
    throw Error(
        ErrorKind::corrupt,
        fmt::format("{}: the index leads out of the dataset: run stoker index", printable(path)));
  }
  for (size_t i = 0; i < roots_.size(); ++i) {
    const std::string whole = roots_[i] + "/" + path;
    std::unique_ptr<ReadableFile> file;
    try {
      file = file_system_.open(whole);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::not_found) throw;
      if (i + 1 < roots_.size()) continue;
      throw Error(ErrorKind::not_found,
                  fmt::format("{}: was there when it was indexed and has vanished: put it back, "
                              "or run stoker index",
                              printable(whole)),
                  error.os_error());
    }
    const FileInfo info = file->info();
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
    return file;
  }
  throw Error(ErrorKind::usage, "no root to look for shards in");
}

void ShardFiles::keep(Kept kept) {
  const auto known = by_path_.find(kept.path);
  if (known != by_path_.end()) kept_.erase(known->second);
  kept_.push_front(std::move(kept));
  by_path_[kept_.front().path] = kept_.begin();
  if (kept_.size() > limit_) {
    by_path_.erase(kept_.back().path);
    kept_.pop_back();
  }
}

std::shared_ptr<ReadableFile> ShardFiles::open(const std::string& path,
                                               const ExpectedFile& expected,
                                               Compression compression) {
  const uint64_t news = staged_ ? this->news() : 0;
  std::shared_ptr<ReadableFile> file;
  {
    const std::lock_guard lock(mutex_);
    const auto known = by_path_.find(path);
    if (known != by_path_.end()) {
      kept_.splice(kept_.begin(), kept_, known->second);
      file = known->second->file;
      if (known->second->staged || known->second->news == news) return file;
      known->second->news = news;  // whoever comes now need not look as well
    }
  }
  std::unique_ptr<ReadableFile> nearer = staged_ ? open_staged(path, expected) : nullptr;
  const bool staged = nearer != nullptr;
  if (file != nullptr && !staged) return file;
  file = inflate(staged ? std::move(nearer) : open_once(path, expected),
                 roots_.front() + "/" + path, compression);
  const std::lock_guard lock(mutex_);
  const auto known = by_path_.find(path);
  // Another thread was quicker.
  if (known != by_path_.end() && (known->second->staged || !staged)) return known->second->file;
  keep({path, file, news, staged});
  return file;
}

}  // namespace stoker
