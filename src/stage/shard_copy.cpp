// SPDX-License-Identifier: Apache-2.0
#include "stage/shard_copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"
#include "os/page_cache.h"

namespace stoker {
namespace {

// What the system is asked for ahead: large, for network storage, where every request is a journey.
constexpr uint64_t kRequest = 8 << 20;
// What is moved at a time: stays in a core's own cache between reading, checksum and writing.
constexpr uint64_t kPiece = 256 << 10;
// What is read at a time past the page cache, where nothing is asked for ahead.
constexpr uint64_t kDirectPiece = 2 << 20;
// What such requests begin and end at, in the file and in memory.
constexpr uint64_t kPage = 4096;
// What a thread copies of a shard that several work at.
constexpr uint64_t kStretch = 64 << 20;

/// Ranges that one thread copies, and which range of the index each belongs to.
struct Stretch {
  uint64_t begin = 0, end = 0;
  size_t range = 0;
  uint32_t crc = 0;
};

class Copy {
 public:
  Copy(FileSystem& file_system, const std::string& root, const ShardToStage& shard, int to,
       const std::string& to_path, const ShardCopyOptions& options)
      : from_path_(root + "/" + shard.path),
        from_(file_system.beneath(root)->open(shard.path, Links::trusted)),
        shard_(shard),
        to_(to),
        to_path_(to_path),
        options_(options) {
    hints_ = open_again(0);
    // A file system on a block device: those of a network count on what is asked for ahead.
    if (major(from_->info().device) != 0) direct_ = open_again(O_DIRECT);
  }
  ~Copy() {
    if (hints_ >= 0) ::close(hints_);
    if (direct_ >= 0) ::close(direct_);
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  CopiedShard run();

 private:
  int open_again(int flags) const;
  void check_source() const;
  /// Whether the file system made the copy share its blocks with the source.
  bool clone() const { return hints_ >= 0 && ::ioctl(to_, FICLONE, hints_) == 0; }
  void ask_for(uint64_t offset, uint64_t length) const;
  std::vector<Stretch> stretches() const;
  void copy(Stretch& stretch) const;
  uint64_t copy_direct(Stretch& stretch, uint64_t begin, uint64_t end, MutableBytes memory) const;
  void copy_cached(Stretch& stretch, uint64_t begin, uint64_t end, MutableBytes memory) const;
  void read(uint64_t offset, MutableBytes into) const;
  void write(uint64_t offset, Bytes bytes) const;
  [[noreturn]] void changed() const;

  std::string from_path_;
  std::unique_ptr<ReadableFile> from_;
  int hints_ = -1;   // the same file, to tell the system about; -1 in tests
  int direct_ = -1;  // the same, to be read past the page cache; -1 where that is not possible
  const ShardToStage& shard_;
  int to_;
  const std::string& to_path_;
  const ShardCopyOptions& options_;
  bool cloned_ = false;
};

/// The source once more, or -1. By its path: another file may have got its name meanwhile.
int Copy::open_again(int flags) const {
  const int file = ::open(from_path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
  struct stat status {};
  const FileInfo info = from_->info();
  if (file >= 0 && ::fstat(file, &status) == 0 && status.st_ino == info.inode &&
      status.st_dev == info.device) {
    return file;
  }
  if (file >= 0) ::close(file);
  return -1;
}

void Copy::changed() const {
  throw Error(
      ErrorKind::corrupt,
      fmt::format("{}: changed while it was copied, so nothing of it was kept: run again when "
                  "nobody writes to it",
                  printable(from_path_)));
}

void Copy::check_source() const {
  const FileInfo info = from_->info();
  if (info.kind != FileKind::file || info.size != shard_.size) {
    throw Error(
        ErrorKind::corrupt,
        fmt::format("{}: has changed since it was indexed ({} bytes then, {} now): run stoker "
                    "index",
                    printable(from_path_), shard_.size, info.size));
  }
  if (shard_.ranges.empty() && shard_.modified_ns != 0 && info.modified_ns != shard_.modified_ns) {
    throw Error(
        ErrorKind::corrupt,
        fmt::format("{}: was modified after it was indexed, and the index has no checksums to "
                    "compare: run stoker index",
                    printable(from_path_)));
  }
}

void Copy::ask_for(uint64_t offset, uint64_t length) const {
  if (hints_ < 0 || cloned_ || length == 0) return;
  (void)::posix_fadvise(hints_, static_cast<off_t>(offset), static_cast<off_t>(length),
                        POSIX_FADV_WILLNEED);
}

std::vector<Stretch> Copy::stretches() const {
  std::vector<ShardToStage::Range> ranges = shard_.ranges;
  if (ranges.empty()) ranges.push_back({0, shard_.size, 0});
  std::vector<Stretch> stretches;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const uint64_t step = options_.threads > 1 ? kStretch : ranges[i].end - ranges[i].begin;
    for (uint64_t at = ranges[i].begin; at < ranges[i].end; at += step) {
      stretches.push_back({at, std::min(at + step, ranges[i].end), i, 0});
    }
  }
  return stretches;
}

void Copy::read(uint64_t offset, MutableBytes into) const {
  if (!cloned_) {
    if (from_->read_at(offset, into) != into.size()) changed();
    return;
  }
  while (!into.empty()) {
    const ssize_t got = ::pread(to_, into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw system_error(to_path_, "cannot read back", errno);
    if (got == 0) changed();
    offset += static_cast<uint64_t>(got);
    into = into.subspan(static_cast<size_t>(got));
  }
}

void Copy::write(uint64_t offset, Bytes bytes) const {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(to_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw system_error(to_path_, "cannot write", errno);
    offset += static_cast<uint64_t>(put);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
}

/// Copies from `begin` on past the page cache: what is read once need not be kept, and costs a copy
/// less. Returns how far it came: to `begin` where the system has the part in memory already, and
/// not to `end` where it does not read that way.
uint64_t Copy::copy_direct(Stretch& stretch, uint64_t begin, uint64_t end,
                           MutableBytes memory) const {
  if (cached_bytes(direct_, begin, end - begin) > (end - begin) / 2) return begin;
  for (uint64_t at = begin; at < end;) {
    const uint64_t first = at / kPage * kPage;
    const uint64_t wanted = std::min<uint64_t>(end - first, memory.size());
    const ssize_t got =
        ::pread(direct_, memory.data(), round_up(wanted, kPage), static_cast<off_t>(first));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return at;  // what cannot be read at all, read() will say
    const uint64_t last = std::min<uint64_t>(end, first + static_cast<uint64_t>(got));
    if (last <= at) changed();
    const Bytes piece = Bytes(memory).subspan(at - first, last - at);
    stretch.crc = crc32c(piece, stretch.crc);
    write(at, piece);
    at = last;
  }
  return end;
}

void Copy::copy_cached(Stretch& stretch, uint64_t begin, uint64_t end, MutableBytes memory) const {
  ask_for(begin, std::min(2 * kRequest, stretch.end - begin));
  for (uint64_t at = begin; at < end;) {
    const MutableBytes piece = memory.first(std::min<uint64_t>({kPiece, memory.size(), end - at}));
    read(at, piece);
    stretch.crc = crc32c(piece, stretch.crc);
    if (!cloned_) write(at, piece);
    at += piece.size();
  }
}

void Copy::copy(Stretch& stretch) const {
  // One page more than there are bytes, for those that begin within one.
  const uint64_t size = std::min(direct_ >= 0 ? kDirectPiece : kPiece,
                                 round_up(stretch.end - stretch.begin, kPage) + kPage);
  const std::unique_ptr<std::byte[], decltype(&std::free)> memory(
      static_cast<std::byte*>(std::aligned_alloc(kPage, size)), &std::free);
  if (!memory) throw std::bad_alloc();
  bool direct = direct_ >= 0 && !cloned_;
  for (uint64_t begin = stretch.begin; begin < stretch.end; begin += kRequest) {
    if (options_.progress != nullptr) options_.progress->check_stop();
    const uint64_t end = std::min(stretch.end, begin + kRequest);
    uint64_t at = begin;
    if (direct) at = copy_direct(stretch, begin, end, {memory.get(), size});
    // From then on: what is asked for ahead is in memory when its turn comes.
    direct = at == end;
    if (!direct) copy_cached(stretch, at, end, {memory.get(), size});
    // The disk is busy while the next bytes come, and the sync at the end has little left to do.
    (void)::sync_file_range(to_, static_cast<off_t>(begin), static_cast<off_t>(end - begin),
                            SYNC_FILE_RANGE_WRITE);
    if (options_.progress != nullptr) options_.progress->bytes += end - begin;
  }
}

CopiedShard Copy::run() {
  check_source();
  const FileInfo before = from_->info();
  cloned_ = clone();
  std::vector<Stretch> all = stretches();
  parallel_for(all.size(), options_.threads, [&](size_t i) { copy(all[i]); });
  if (::fsync(to_) != 0) throw system_error(to_path_, "cannot sync", errno);
  const FileInfo after = from_->info();
  if (after.size != before.size || after.modified_ns != before.modified_ns) changed();

  CopiedShard copied;
  std::vector<uint32_t> crcs(shard_.ranges.size(), 0);
  for (const Stretch& stretch : all) {
    const uint64_t length = stretch.end - stretch.begin;
    copied.crc = crc32c_combine(copied.crc, stretch.crc, length);
    if (stretch.range < crcs.size()) {
      crcs[stretch.range] = crc32c_combine(crcs[stretch.range], stretch.crc, length);
    }
  }
  for (size_t i = 0; i < crcs.size(); ++i) copied.matches &= crcs[i] == shard_.ranges[i].crc;
  return copied;
}

}  // namespace

std::vector<ShardToStage> shards_of(const Index& index) {
  std::vector<ShardToStage> shards;
  std::map<std::string, size_t> known;
  for (uint32_t s = 0; s < index.manifest().segments.size(); ++s) {
    const Segment& segment = index.segment(s);
    for (uint32_t i = 0; i < segment.shard_count(); ++i) {
      const Shard shard = segment.shard(i);
      const auto [found, added] = known.emplace(shard.path, shards.size());
      if (added) shards.push_back({shard.path, shard.size, shard.modified_ns, {}, {}});
      ShardToStage& staged = shards[found->second];
      staged.segments.push_back(s);
      if (segment.depth() == Depth::full)
        staged.ranges.push_back({shard.begin, shard.end, shard.crc});
    }
  }
  for (ShardToStage& shard : shards) {
    std::sort(shard.ranges.begin(), shard.ranges.end(),
              [](const auto& a, const auto& b) { return a.begin < b.begin; });
    // Several segments may speak of the same bytes: each once, and only where all are covered.
    std::vector<ShardToStage::Range> covering;
    uint64_t at = 0;
    for (const ShardToStage::Range& range : shard.ranges) {
      if (range.begin != at || range.end <= at) continue;
      covering.push_back(range);
      at = range.end;
    }
    if (at != shard.size) covering.clear();
    shard.ranges = std::move(covering);
  }
  return shards;
}

CopiedShard copy_shard(FileSystem& file_system, const std::string& root, const ShardToStage& shard,
                       int to, const std::string& to_path, const ShardCopyOptions& options) {
  return Copy(file_system, root, shard, to, to_path, options).run();
}

}  // namespace stoker
