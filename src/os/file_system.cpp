// SPDX-License-Identifier: Apache-2.0
#include "os/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/text.h"
#include "os/open_beneath.h"

namespace stoker {
namespace {

FileKind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return FileKind::file;
  if (S_ISDIR(mode)) return FileKind::directory;
  if (S_ISLNK(mode)) return FileKind::link;
  return FileKind::other;
}

FileKind kind_of_entry(unsigned char type) {
  switch (type) {
    case DT_REG:
      return FileKind::file;
    case DT_DIR:
      return FileKind::directory;
    case DT_LNK:
      return FileKind::link;
    case DT_UNKNOWN:
      return FileKind::unknown;
    default:
      return FileKind::other;
  }
}

/// What the kernel would answer, as far as mode bits go, without asking it once more per file.
bool readable_by_us(const struct stat& status) {
  constexpr mode_t kAll = S_IRUSR | S_IRGRP | S_IROTH;
  if ((status.st_mode & kAll) == kAll) return true;
  const uid_t user = ::geteuid();
  if (user == 0) return true;
  if (status.st_uid == user) return (status.st_mode & S_IRUSR) != 0;
  bool member = status.st_gid == ::getegid();
  if (!member) {
    std::vector<gid_t> groups(static_cast<size_t>(std::max(0, ::getgroups(0, nullptr))));
    const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
    groups.resize(static_cast<size_t>(std::max(0, count)));
    member = std::find(groups.begin(), groups.end(), status.st_gid) != groups.end();
  }
  return (status.st_mode & (member ? S_IRGRP : S_IROTH)) != 0;
}

FileInfo info_of(const struct stat& status) {
  return {kind_of(status.st_mode),
          static_cast<uint64_t>(status.st_size),
          int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec,
          status.st_mode & 07777U,
          status.st_gid,
          status.st_dev,
          status.st_ino,
          readable_by_us(status),
          int64_t{status.st_ctim.tv_sec} * 1'000'000'000 + status.st_ctim.tv_nsec};
}

class RealFile final : public ReadableFile {
 public:
  RealFile(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  ~RealFile() override { ::close(descriptor_); }
  RealFile(const RealFile&) = delete;
  RealFile& operator=(const RealFile&) = delete;

  size_t read_at(uint64_t offset, MutableBytes into) override {
    size_t done = 0;
    while (done < into.size()) {
      // Not ::pread(): that is a point of cancellation, which costs two locked instructions.
      const ssize_t got = ::syscall(SYS_pread64, descriptor_, into.data() + done,
                                    into.size() - done, static_cast<off_t>(offset + done));
      if (got == 0) break;
      if (got < 0) {
        if (errno == EINTR) continue;
        throw system_error(path_, fmt::format("cannot read at offset {}", offset + done), errno);
      }
      done += static_cast<size_t>(got);
    }
    return done;
  }

  size_t read_at(uint64_t offset, std::span<const MutableBytes> into) override {
    size_t done = 0;
    while (!into.empty()) {
      iovec pieces[256];
      const size_t count = std::min<size_t>(into.size(), std::size(pieces));
      size_t wanted = 0;
      for (size_t i = 0; i < count; ++i) {
        pieces[i] = {into[i].data(), into[i].size()};
        wanted += into[i].size();
      }
      ssize_t got = 0;
      do {
        got = ::preadv(descriptor_, pieces, static_cast<int>(count),
                       static_cast<off_t>(offset + done));
      } while (got < 0 && errno == EINTR);
      if (got < 0) {
        throw system_error(path_, fmt::format("cannot read at offset {}", offset + done), errno);
      }
      if (static_cast<size_t>(got) < wanted) return done + finish_short(offset + done, into, got);
      done += wanted;
      into = into.subspan(count);
    }
    return done;
  }

  FileInfo info() override {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) throw system_error(path_, "cannot stat", errno);
    return info_of(status);
  }

 private:
  /// A short vectored read: goes on piece by piece, which sorts out where it stopped.
  size_t finish_short(uint64_t offset, std::span<const MutableBytes> into, ssize_t got) {
    size_t skip = static_cast<size_t>(got);
    size_t done = skip;
    for (MutableBytes piece : into) {
      const size_t covered = std::min(skip, piece.size());
      skip -= covered;
      piece = piece.subspan(covered);
      if (piece.empty()) continue;
      const size_t more = read_at(offset + done, piece);
      done += more;
      if (more < piece.size()) break;
    }
    return done;
  }

  int descriptor_;
  std::string path_;
};

// Never block on a fifo that took a file's place.
constexpr int kRead = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

/// For a file system that says nothing about links: a fake one.
class PlainBeneath final : public FilesBeneath {
 public:
  PlainBeneath(FileSystem& file_system, std::string directory)
      : file_system_(file_system), directory_(std::move(directory)) {}
  std::unique_ptr<ReadableFile> open(const std::string& name, Links /*links*/) override {
    return file_system_.open(directory_ + "/" + name);
  }

 private:
  FileSystem& file_system_;
  std::string directory_;
};

class RealBeneath final : public FilesBeneath {
 public:
  explicit RealBeneath(std::string directory) : opener_(std::move(directory)) {}
  std::unique_ptr<ReadableFile> open(const std::string& name, Links links) override {
    return std::make_unique<RealFile>(opener_.open(name, kRead, links), opener_.path_of(name));
  }

 private:
  OpenBeneath opener_;
};

class RealFileSystem final : public FileSystem {
 public:
  std::unique_ptr<ReadableFile> open(const std::string& path) override {
    const int descriptor = ::open(path.c_str(), kRead);
    if (descriptor < 0) throw system_error(path, "cannot open", errno);
    return std::make_unique<RealFile>(descriptor, path);
  }

  std::unique_ptr<FilesBeneath> beneath(const std::string& directory) override {
    return std::make_unique<RealBeneath>(directory);
  }

  std::optional<FileInfo> info(const std::string& path, bool follow_links) override {
    struct stat status {};
    const int failed =
        follow_links ? ::stat(path.c_str(), &status) : ::lstat(path.c_str(), &status);
    if (failed != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
      throw system_error(path, "cannot stat", errno);
    }
    return info_of(status);
  }

  void list(const std::string& directory, const EachEntry& each) override {
    DIR* stream = ::opendir(directory.c_str());
    if (stream == nullptr) throw system_error(directory, "cannot list", errno);
    const std::unique_ptr<DIR, int (*)(DIR*)> closer(stream, ::closedir);
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(stream);
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      each(name, kind_of_entry(entry->d_type));
    }
    if (errno != 0) throw system_error(directory, "cannot list", errno);
  }
};

}  // namespace

std::unique_ptr<FilesBeneath> FileSystem::beneath(const std::string& directory) {
  return std::make_unique<PlainBeneath>(*this, directory);
}

std::vector<DirectoryEntry> FileSystem::list(const std::string& directory) {
  std::vector<DirectoryEntry> entries;
  list(directory, [&](std::string_view name, FileKind kind) {
    entries.push_back({std::string(name), kind});
  });
  return entries;
}

FileSystem& real_file_system() {
  static RealFileSystem instance;
  return instance;
}

void read_exactly(ReadableFile& file, const std::string& path, uint64_t offset, MutableBytes into) {
  const size_t got = file.read_at(offset, into);
  if (got != into.size()) {
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: ends at offset {}, {} bytes short of what is needed there",
                            printable(path), offset + got, into.size() - got));
  }
}

namespace {

class FileSystemBeneath final : public FileSystem {
 public:
  explicit FileSystemBeneath(const std::string& root)
      : prefix_(root + "/"), files_(real_file_system().beneath(root)) {}

  std::unique_ptr<ReadableFile> open(const std::string& path) override {
    if (!path.starts_with(prefix_)) return real_file_system().open(path);
    return files_->open(path.substr(prefix_.size()), Links::trusted);
  }
  std::unique_ptr<FilesBeneath> beneath(const std::string& directory) override {
    return real_file_system().beneath(directory);
  }
  std::optional<FileInfo> info(const std::string& path, bool follow_links) override {
    return real_file_system().info(path, follow_links);
  }
  void list(const std::string& directory, const EachEntry& each) override {
    real_file_system().list(directory, each);
  }

 private:
  std::string prefix_;
  std::unique_ptr<FilesBeneath> files_;
};

}  // namespace

std::unique_ptr<FileSystem> file_system_beneath(const std::string& root) {
  return std::make_unique<FileSystemBeneath>(root);
}

}  // namespace stoker
