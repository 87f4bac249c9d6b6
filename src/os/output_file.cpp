// SPDX-License-Identifier: Apache-2.0
#include "os/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "os/file_system.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

std::string parent_of(const std::string& path) {
  std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

/// False and errno where that fails.
bool give_access(int descriptor, const Access& access) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return false;
  const uint32_t is = status.st_mode & 07777U;
  uint32_t add = access.add;
  if (S_ISDIR(status.st_mode)) add |= (add & 0444U) >> 2;
  uint32_t wanted = (is | add) & (access.keep | ~0777U);
  const bool other_group = access.group >= 0 && status.st_gid != access.group;
  if (other_group && (wanted & S_IRWXG) != 0 &&
      ::fchown(descriptor, static_cast<uid_t>(-1), static_cast<gid_t>(access.group)) != 0) {
    wanted &= ~static_cast<uint32_t>(S_IRWXG);  // members of its group need not be of that one
  }
  return wanted == is || ::fchmod(descriptor, wanted) == 0;
}

}  // namespace

std::string OutputFile::temporary_name(const std::string& path) {
  const fs::path whole(path);
  return (whole.parent_path() / ("." + whole.filename().string() + ".stoker-tmp")).string();
}

OutputFile::OutputFile(std::string path, const Access& access)
    : path_(std::move(path)), temporary_(temporary_name(path_)) {
  // A file of its own: whoever was at it before us may still be, on a node that was given up. What
  // both write to one file has holes where one of them began anew.
  do {
    if (::unlink(temporary_.c_str()) != 0 && errno != ENOENT) break;
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) throw system_error(temporary_, "cannot create", errno);
  if (!give_access(descriptor_, access)) {
    const int cause = errno;
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
    throw system_error(temporary_, "cannot set permissions", cause);
  }
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  if (!is_taken()) ::unlink(temporary_.c_str());
  ::close(descriptor_);
}

bool OutputFile::is_taken() const {
  struct stat own {
  }, there{};
  return ::fstat(descriptor_, &own) == 0 && ::lstat(temporary_.c_str(), &there) == 0 &&
         (own.st_dev != there.st_dev || own.st_ino != there.st_ino);
}

void OutputFile::write(Bytes bytes) {
  const uint64_t begin = size_;
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
    if (put < 0) {
      if (errno == EINTR) continue;
      throw system_error(path_, fmt::format("cannot write at offset {}", size_), errno);
    }
    size_ += static_cast<uint64_t>(put);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  // Begin writing to the disk now, so that it is busy while the next bytes are prepared and
  // commit() has little left to wait for. A file system without it loses nothing.
  (void)::sync_file_range(descriptor_, static_cast<off_t>(begin), static_cast<off_t>(size_ - begin),
                          SYNC_FILE_RANGE_WRITE);
}

void OutputFile::write_at(uint64_t offset, Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t put =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0) {
      if (errno == EINTR) continue;
      throw system_error(path_, fmt::format("cannot write at offset {}", offset), errno);
    }
    offset += static_cast<uint64_t>(put);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
}

void OutputFile::commit() {
  // Sync before rename: a node that dies must leave the old file or the new one, never a file
  // that looks complete and is not.
  if (::fsync(descriptor_) != 0) throw system_error(path_, "cannot sync", errno);
  if (is_taken()) {
    throw Error(ErrorKind::io,
                fmt::format("{}: another process has begun to write it too: let one of them do "
                            "it, and run again",
                            printable(path_)));
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    throw system_error(path_, "cannot rename into place", errno);
  }
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0) throw system_error(path_, "cannot close", errno);
  sync_directory(parent_of(path_));
}

void set_access(const std::string& path, const Access& access) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return;
  struct stat status {};
  if (::fstat(file, &status) == 0 && status.st_uid == ::geteuid()) {
    (void)give_access(file, access);
  }
  ::close(file);
}

void write_file(const std::string& path, Bytes contents, const Access& access) {
  OutputFile file(path, access);
  file.write(contents);
  file.commit();
}

std::string read_file(const std::string& path, uint64_t limit) {
  const auto file = real_file_system().open(path);
  const FileInfo info = file->info();
  if (info.kind == FileKind::directory) throw system_error(path, "cannot read", EISDIR);
  if (info.size > limit) {
    throw Error(ErrorKind::corrupt, fmt::format("{}: {} bytes is too large for such a file",
                                                printable(path), info.size));
  }
  std::string contents(info.size, '\0');
  contents.resize(file->read_at(0, std::as_writable_bytes(std::span(contents))));
  return contents;
}

void make_directories(const std::string& path, uint32_t add_mode) {
  if (path.empty() || fs::is_directory(path)) return;
  make_directories(fs::path(path).parent_path().string(), add_mode);
  if (::mkdir(path.c_str(), 0777) != 0) {
    if (errno == EEXIST && fs::is_directory(path)) return;
    throw system_error(path, "cannot create directory", errno);
  }
  struct stat status {};
  if (add_mode != 0 && ::stat(path.c_str(), &status) == 0) {
    (void)::chmod(path.c_str(), (status.st_mode & 07777U) | add_mode);
  }
}

void sync_directory(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw system_error(path, "cannot open", errno);
  const int failed = ::fsync(descriptor);
  const int cause = errno;
  ::close(descriptor);
  // Some network file systems refuse to sync a directory; the rename is then as safe as it gets.
  if (failed != 0 && cause != EINVAL && cause != EBADF) {
    throw system_error(path, "cannot sync", cause);
  }
}

uint64_t free_space(const std::string& path) {
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0) throw system_error(path, "cannot stat", errno);
  return uint64_t{status.f_bavail} * status.f_frsize;
}

}  // namespace stoker
