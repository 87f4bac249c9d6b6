// SPDX-License-Identifier: Apache-2.0
#include "dataset/shard_files.h"

#include <fmt/format.h>

#include <iterator>

#include "base/error.h"
#include "base/text.h"
#include "dataset/inflating_file.h"

namespace stoker {

ShardFiles::ShardFiles(FileSystem& file_system, std::vector<std::string> roots, size_t limit,
                       const ViewLimits& views)
    : file_system_(file_system), roots_(std::move(roots)), limit_(limit), views_(views) {}

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

void ShardFiles::forget(Place place) {
  by_name_.erase(place->name);
  kept_.erase(place);
}

std::shared_ptr<ReadableFile> ShardFiles::open(const Segment& segment, uint32_t number) {
  const Shard shard = segment.shard(number);
  const bool is_view = shard.compression == Compression::tiled;
  // No path has a NUL in it. A view is read from the segment only where it is not open already.
  const std::string views_of =
      is_view ? fmt::format("{}{}{:08x}", shard.path, '\0', segment.header_crc()) : "";
  const std::string name = is_view ? fmt::format("{}.{}", views_of, number) : shard.path;
  {
    const std::lock_guard lock(mutex_);
    const auto known = by_name_.find(name);
    if (known != by_name_.end()) {
      kept_.splice(kept_.begin(), kept_, known->second);
      return known->second->file;
    }
  }
  const int64_t modified = segment.depth() == Depth::structure ? shard.modified_ns : 0;
  std::shared_ptr<ReadableFile> file =
      inflate(open_once(shard.path, {shard.size, modified}), roots_.front() + "/" + shard.path,
              shard.compression, segment.view(number), views_);
  const std::lock_guard lock(mutex_);
  const auto known = by_name_.find(name);
  if (known != by_name_.end()) return known->second->file;  // another thread was quicker
  kept_.push_front({name, views_of, file});
  by_name_[name] = kept_.begin();
  if (kept_.size() > limit_) forget(std::prev(kept_.end()));
  // A view keeps many rows: those that were read before go.
  for (auto next = kept_.begin(); is_view && next != kept_.end();) {
    const Place other = next++;
    if (!other->views_of.empty() && other->views_of != views_of) forget(other);
  }
  return file;
}

}  // namespace stoker
