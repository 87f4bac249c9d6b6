// SPDX-License-Identifier: Apache-2.0
#include "stage/copy_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"
#include "dataset/reader.h"
#include "os/output_file.h"
#include "stage/verify_copy.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kLook{50};  // between looks at what others do
constexpr size_t kMostFaults = 1000;
constexpr size_t kPiece = 1 << 20;  // of a file of the index, that is copied at once

std::string number_name(size_t shard) { return fmt::format("{}", shard); }

/// A new file, which is closed when the object is gone.
struct NewFile {
  NewFile(const SafeDirectory& directory, const std::string& name, uint32_t mode)
      : descriptor(directory.create(name, mode)) {
    if (descriptor < 0) throw system_error(directory.path() + "/" + name, "cannot create", EEXIST);
  }
  ~NewFile() { ::close(descriptor); }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  int descriptor;
};

/// Copies a file of the index: small against the data, and checked by whoever reads it.
void copy_small_file(FilesBeneath& from, const SafeDirectory& to, const std::string& name,
                     uint32_t mode) {
  const auto source = from.open(name, Links::trusted);
  const NewFile file(to, name, mode);
  std::vector<std::byte> piece(kPiece);
  uint64_t offset = 0;
  for (size_t got = piece.size(); got == piece.size(); offset += got) {
    got = source->read_at(offset, MutableBytes(piece));
    Bytes left = Bytes(piece).first(got);
    while (!left.empty()) {
      const ssize_t put = ::write(file.descriptor, left.data(), left.size());
      if (put < 0 && errno != EINTR) {
        throw system_error(to.path() + "/" + name, "cannot write", errno);
      }
      left = left.subspan(static_cast<size_t>(std::max<ssize_t>(0, put)));
    }
  }
  if (::fsync(file.descriptor) != 0)
    throw system_error(to.path() + "/" + name, "cannot sync", errno);
}

}  // namespace

CopyRun::CopyRun(const OpenedDataset& source, const std::vector<ShardToStage>& shards,
                 StagedCopy& copy, std::string mark, const CopyRunOptions& options)
    : source_(source),
      shards_(shards),
      copy_(copy),
      mark_(std::move(mark)),
      jobs_(options.jobs),
      partial_(options.partial),
      progress_(options.progress),
      patience_(copy, options.notify) {}

bool CopyRun::present(size_t shard) const {
  if (!copy_.done.read_mark(number_name(shard))) return false;
  // Sites delete single files that nobody has touched for long.
  const std::string path = copy_.data.path() + "/" + shards_[shard].path;
  const std::optional<FileInfo> info = real_file_system().info(path, false);
  return info && info->kind == FileKind::file && info->size == shards_[shard].size;
}

bool CopyRun::on_its_way(size_t shard) const {
  const std::optional<std::string> mark = copy_.claims.read_mark(number_name(shard));
  return mark && *mark != mark_ && copy_.at_work(*mark);
}

void CopyRun::bring(std::vector<size_t> wanted) {
  const auto count = static_cast<unsigned>(std::max<size_t>(1, wanted.size()));
  const unsigned inner = std::max(1U, jobs_ / count);
  while (!wanted.empty()) {
    std::vector<size_t> with_others;
    parallel_for(wanted.size(), jobs_, [&](size_t i) {
      const size_t shard = wanted[i];
      if (progress_ != nullptr) progress_->check_stop();
      if (present(shard) || full_) return;
      const Claim claim(copy_, number_name(shard), mark_);
      if (!claim.taken() && !patience_.is_over(number_name(shard))) {
        const std::lock_guard lock(mutex_);
        with_others.push_back(shard);
      } else if (!present(shard)) {
        copy_if_room(shard, inner);
      }
    });
    if (with_others.size() == wanted.size()) std::this_thread::sleep_for(kLook);
    std::sort(with_others.begin(), with_others.end());
    wanted = std::move(with_others);
  }
}

void CopyRun::copy_if_room(size_t shard, unsigned threads) {
  try {
    copy(shard, threads);
  } catch (const Error& error) {
    const bool full = error.os_error() == ENOSPC || error.os_error() == EDQUOT;
    if (!partial_ || !full) throw;
    full_ = true;
    const std::string part = copy_.parts.path() + "/" + mark_ + "/" + shards_[shard].path;
    ::unlink(part.c_str());
  }
}

void CopyRun::copy(size_t number, unsigned threads) {
  const ShardToStage& shard = shards_[number];
  const SafeDirectory root = copy_.parts.make(mark_, copy_.modes.directory);
  const SafeDirectory part = root.make_parents(shard.path, copy_.modes.directory);
  const std::string name = shard.path.substr(shard.path.rfind('/') + 1);
  part.remove(name);
  CopiedShard copied;
  {
    const NewFile file(part, name, copy_.modes.file);
    copied = copy_shard(real_file_system(), source_.paths.root, shard, file.descriptor,
                        part.path() + "/" + name, {threads, progress_});
  }
  if (!copied.matches) {
    std::vector<Fault> bad = bad_samples(shard, root.path());
    if (!bad.empty()) {
      part.remove(name);
      const std::lock_guard lock(mutex_);
      faults_.insert(faults_.end(), bad.begin(), bad.end());
      return;
    }
    // Only bytes that belong to no sample are others: every sample has been compared.
  }
  const SafeDirectory to = copy_.data.make_parents(shard.path, copy_.modes.directory);
  part.rename(name, to, name);
  to.sync();
  // Others may look at it at this moment, where two have copied the same.
  const std::string crc = fmt::format("{:08x}", copied.crc);
  if (copy_.done.read_mark(number_name(number)) != crc) {
    copy_.done.remove(number_name(number));
    copy_.done.mark(number_name(number), crc);
  }
  const std::lock_guard lock(mutex_);
  copied_bytes_ += shard.size;
}

std::vector<Fault> CopyRun::bad_samples(const ShardToStage& shard, const std::string& root) const {
  ReaderOptions options;
  options.roots = {root, source_.paths.root};
  options.threads = 1;
  const Reader reader(source_.index, options);
  const Index& index = *source_.index;
  std::vector<Fault> faults;
  for (const uint32_t segment : shard.segments) {
    constexpr uint64_t kStep = 16;
    const uint64_t end = index.first_sample(segment) + index.segment(segment).samples();
    for (uint64_t at = index.first_sample(segment); at < end; at += kStep) {
      if (progress_ != nullptr) progress_->check_stop();
      std::vector<uint64_t> samples;
      for (uint64_t i = at; i < std::min(end, at + kStep); ++i) samples.push_back(i);
      Batch batch = reader.locate(samples);
      uint64_t bytes = 0;
      for (const Item& item : batch.items) bytes += item.length;
      const auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
      uint64_t used = 0;
      for (Item& item : batch.items) {
        item.data = memory.get() + used;
        used += item.length;
      }
      for (ReadFailure& failure : reader.fetch(batch)) {
        if (faults.size() < kMostFaults) faults.push_back(std::move(failure.fault));
      }
    }
  }
  return faults;
}

bool CopyRun::index_is_whole(const std::string& directory) const {
  try {
    const Manifest manifest = Manifest::read(directory + "/" + kManifestName);
    return std::all_of(manifest.segments.begin(), manifest.segments.end(),
                       [&](const SegmentEntry& entry) {
                         return fs::is_regular_file(directory + "/" + entry.file);
                       });
  } catch (const Error&) {
    return false;
  }
}

std::vector<size_t> CopyRun::damaged() const {
  std::vector<size_t> there;
  std::vector<FileToVerify> files;
  for (size_t i = 0; i < shards_.size(); ++i) {
    const std::optional<std::string> mark = copy_.done.read_mark(number_name(i));
    if (!mark || !present(i)) continue;
    uint32_t crc = 0;
    std::from_chars(mark->data(), mark->data() + mark->size(), crc, 16);
    there.push_back(i);
    files.push_back({copy_.data.path() + "/" + shards_[i].path, shards_[i].size, crc});
  }
  std::vector<size_t> damaged = differing_files(files, jobs_, progress_);
  for (size_t& number : damaged) number = there[number];
  for (const size_t i : there) {
    if (!std::binary_search(damaged.begin(), damaged.end(), i)) copy_.done.touch(number_name(i));
  }
  return damaged;
}

void CopyRun::forget(size_t shard) { copy_.done.remove(number_name(shard)); }

int64_t CopyRun::verified_at() const {
  int64_t earliest = 0;
  for (size_t i = 0; i < shards_.size(); ++i) {
    const std::optional<FileInfo> mark = copy_.done.info(number_name(i));
    if (mark && (earliest == 0 || mark->modified_ns < earliest)) earliest = mark->modified_ns;
  }
  return earliest / 1'000'000'000;
}

void CopyRun::check_index() {
  const std::string place = source_.paths.index_in_copy();
  const SafeDirectory above = copy_.data.make_parents(place, copy_.modes.directory);
  const std::string name = place.substr(place.rfind('/') + 1);
  if (!above.info(name)) return;
  bool same = false;
  try {
    const std::string directory = above.path() + "/" + name;
    same = source_.index->manifest().depth == Depth::full ? is_same_index(*source_.index, directory)
                                                          : differing_shards(directory).empty();
  } catch (const Error&) {  // damaged
  }
  if (!same) above.remove_tree(name);
}

void CopyRun::copy_index(const SafeDirectory& part) const {
  const std::string& directory = source_.index->directory();
  const std::unique_ptr<FilesBeneath> from = real_file_system().beneath(directory);
  for (const SegmentEntry& entry : source_.index->manifest().segments) {
    copy_small_file(*from, part, entry.file, copy_.modes.file);
    const std::string rows = row_index_path(entry.file);
    if (!fs::is_regular_file(directory + "/" + rows)) continue;
    try {
      copy_small_file(*from, part, rows, copy_.modes.file);
    } catch (const Error&) {  // no room, say: photos can be decoded without
      part.remove(rows);
    }
  }
  copy_small_file(*from, part, kManifestName, copy_.modes.file);
}

std::vector<size_t> CopyRun::differing_shards(const std::string& directory) const {
  std::vector<size_t> differing;
  const std::vector<ShardToStage> found = shards_of(Index(directory));
  for (size_t i = 0; i < shards_.size(); ++i) {
    const auto same = std::find_if(found.begin(), found.end(), [&](const ShardToStage& other) {
      return other.path == shards_[i].path;
    });
    const uint32_t crc = same != found.end() ? checksum_of(*same) : 0;
    const std::string expected = copy_.done.read_mark(number_name(i)).value_or("");
    if (same == found.end() || fmt::format("{:08x}", crc) != expected) differing.push_back(i);
  }
  return differing;
}

/// The source's index has no checksums: the copy's gets them, and by them what lies there is
/// compared with what was in memory when it was copied.
void CopyRun::make_index(const SafeDirectory& part, const std::string& name) {
  const Source source = source_at(source_.paths, "", nullptr);
  const Detected detected = detect_format(source);
  Source staged = source;
  staged.root = copy_.data.path();
  IndexOptions options;
  options.depth = Depth::full;
  options.jobs = jobs_;
  options.earlier = source_.index->directory();
  options.progress = progress_;
  const std::string directory = part.path() + "/" + name;
  const IndexResult made = build_index_in(staged, detected, directory, options);
  const std::vector<size_t> differing = differing_shards(directory);
  if (!differing.empty()) {
    for (const size_t shard : differing) copy_.done.remove(number_name(shard));
    throw Error(
        ErrorKind::corrupt,
        fmt::format("{}/{}: what is there is not what was written: run again to copy it "
                    "anew, and if that happens again, choose another place",
                    printable(copy_.data.path()), printable(shards_[differing.front()].path)));
  }
  faults_.insert(faults_.end(), made.faults.begin(), made.faults.end());
  checksums_made_ = true;
}

/// Where shards were copied once more, the index that is there already describes them too: readers
/// tell from the times that it does.
void CopyRun::renew_index(const SafeDirectory& above, const std::string& name) const {
  if (copied_bytes_ == 0) return;
  const std::optional<SafeDirectory> directory = above.find(name);
  if (!directory) return;
  for (const DirectoryEntry& entry : directory->list()) directory->touch(entry.name);
}

void CopyRun::finish() {
  const std::string place = source_.paths.index_in_copy();
  const SafeDirectory above = copy_.data.make_parents(place, copy_.modes.directory);
  const std::string name = place.substr(place.rfind('/') + 1);
  const std::string whole = above.path() + "/" + name;
  std::optional<Claim> claim;
  for (;; std::this_thread::sleep_for(kLook)) {
    if (progress_ != nullptr) progress_->check_stop();
    if (index_is_whole(whole)) return renew_index(above, name);
    claim.emplace(copy_, "index", mark_);
    if (claim->taken() || patience_.is_over("index")) break;
  }
  if (index_is_whole(whole)) return renew_index(above, name);
  const SafeDirectory part = copy_.parts.make(mark_, copy_.modes.directory);
  part.remove_tree("index");
  if (source_.index->manifest().depth == Depth::full) {
    copy_index(part.make("index", copy_.modes.directory));
  } else {
    make_index(part, "index");
  }
  if (index_is_whole(whole)) return;  // two may be at it, where one was stopped for long
  above.remove_tree(name);
  part.rename("index", above, name);
  above.sync();
}

}  // namespace stoker
