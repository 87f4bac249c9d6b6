// SPDX-License-Identifier: Apache-2.0
#include "stage/verify_copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <mutex>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"
#include "os/file_system.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

constexpr size_t kPiece = 1 << 20;

/// A regular file that may be somebody else's.
class PlainFile {
 public:
  explicit PlainFile(const std::string& path)
      : path_(path),
        descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {
    if (descriptor_ < 0) throw system_error(path, "cannot open", errno);
    if (::fstat(descriptor_, &status_) != 0 || !S_ISREG(status_.st_mode)) {
      ::close(descriptor_);
      throw Error(ErrorKind::corrupt, printable(path) + ": is not a regular file");
    }
  }
  ~PlainFile() { ::close(descriptor_); }
  PlainFile(const PlainFile&) = delete;
  PlainFile& operator=(const PlainFile&) = delete;

  uint64_t size() const { return static_cast<uint64_t>(status_.st_size); }

  /// Less than asked for at the end of the file only.
  size_t read(MutableBytes into) const {
    size_t done = 0;
    while (done < into.size()) {
      const ssize_t got = ::read(descriptor_, into.data() + done, into.size() - done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw system_error(path_, "cannot read", errno);
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    return done;
  }

 private:
  std::string path_;
  int descriptor_;
  struct stat status_ {};
};

bool same_bytes(const std::string& a, const std::string& b) {
  const PlainFile first(a), second(b);
  if (first.size() != second.size()) return false;
  std::vector<std::byte> left(kPiece), right(kPiece);
  for (;;) {
    const size_t got = first.read(left), other = second.read(right);
    if (got != other ||
        !std::equal(left.begin(), left.begin() + static_cast<ptrdiff_t>(got), right.begin())) {
      return false;
    }
    if (got < kPiece) return true;
  }
}

}  // namespace

bool is_same_index(const Index& index, const std::string& directory) {
  try {
    const auto same = [&](const std::string& name) {
      return same_bytes(index.directory() + "/" + name, directory + "/" + name);
    };
    if (!same(kManifestName)) return false;
    for (const SegmentEntry& entry : index.manifest().segments) {
      if (!same(entry.file)) return false;
      // One that the source does not have decides about pixels all the same.
      const std::string rows = row_index_path(entry.file);
      struct stat status {};
      const bool there = ::lstat((directory + "/" + rows).c_str(), &status) == 0;
      if (there && !same(rows)) return false;
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

uint32_t checksum_of(const std::string& path, uint64_t expected_size, Progress* progress) {
  const PlainFile file(path);
  if (file.size() != expected_size) {
    throw Error(ErrorKind::corrupt, printable(path) + ": has another size than it should");
  }
  std::vector<std::byte> piece(kPiece);
  uint32_t crc = 0;
  for (size_t got = kPiece; got == kPiece;) {
    if (progress != nullptr) progress->check_stop();
    got = file.read(piece);
    crc = crc32c(Bytes(piece).first(got), crc);
    if (progress != nullptr) progress->bytes += got;
  }
  return crc;
}

uint32_t checksum_of(const ShardToStage& shard) {
  uint32_t crc = 0;
  for (const ShardToStage::Range& range : shard.ranges) {
    crc = crc32c_combine(crc, range.crc, range.end - range.begin);
  }
  return crc;
}

std::vector<size_t> differing_files(const std::vector<FileToVerify>& files, unsigned jobs,
                                    Progress* progress) {
  uint64_t bytes = 0;
  for (const FileToVerify& file : files) bytes += file.size;
  if (progress != nullptr) progress->begin("verifying", 0, bytes);
  std::mutex mutex;
  std::vector<size_t> differing;
  parallel_for(files.size(), jobs, [&](size_t i) {
    try {
      if (checksum_of(files[i].path, files[i].size, progress) == files[i].crc) return;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::interrupted) throw;
    }
    const std::lock_guard lock(mutex);
    differing.push_back(i);
  });
  std::sort(differing.begin(), differing.end());
  return differing;
}

std::string difference_from(const OpenedDataset& source, const std::vector<ShardToStage>& shards,
                            const std::string& directory, unsigned jobs, Progress* progress) {
  std::vector<FileToVerify> files;
  for (const ShardToStage& shard : shards) {
    if (shard.ranges.empty()) {
      return "the source's index has no checksums to compare it with (stoker index --full)";
    }
    files.push_back({directory + "/" + shard.path, shard.size, checksum_of(shard)});
  }
  if (!is_same_index(*source.index, directory + "/" + source.paths.index_in_copy())) {
    return "its index is not that of the source";
  }
  const std::vector<size_t> differing = differing_files(files, jobs, progress);
  if (differing.empty()) return "";
  return fmt::format(
      "{} of {} shards differ from the checksums of the source's index, the first: "
      "{}",
      differing.size(), files.size(), printable(shards[differing.front()].path));
}

std::vector<std::string> damaged_shards(const std::string& directory, unsigned jobs,
                                        Progress* progress) {
  std::vector<FileToVerify> files;
  try {
    for (const ShardToStage& shard : shards_of(Index(directory + "/" + kIndexDirectory))) {
      files.push_back({directory + "/" + shard.path, shard.size, checksum_of(shard)});
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    return {kIndexDirectory};
  }
  std::vector<std::string> names;
  for (const size_t i : differing_files(files, jobs, progress)) {
    names.push_back(files[i].path.substr(directory.size() + 1));
  }
  return names;
}

}  // namespace stoker
