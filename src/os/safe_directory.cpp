// SPDX-License-Identifier: Apache-2.0
#include "os/safe_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/inner_path.h"
#include "base/text.h"
#include "os/node.h"

namespace stoker {
namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

struct Closer {
  int descriptor;
  ~Closer() { ::close(descriptor); }
};

FileKind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return FileKind::file;
  if (S_ISDIR(mode)) return FileKind::directory;
  return S_ISLNK(mode) ? FileKind::link : FileKind::other;
}

Ownership ownership_of(const struct stat& status) {
  return {status.st_uid, status.st_gid, status.st_mode & 07777U};
}

std::vector<DirectoryEntry> list_descriptor(int descriptor, const std::string& path) {
  // A descriptor of its own: reading a directory moves where the next reading begins.
  const int own = ::openat(descriptor, ".", kDirectory);
  DIR* stream = own < 0 ? nullptr : ::fdopendir(own);
  if (stream == nullptr) {
    const int cause = errno;
    if (own >= 0) ::close(own);
    throw system_error(path, "cannot list", cause);
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> closer(stream, ::closedir);
  std::vector<DirectoryEntry> entries;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string name = entry->d_name;
    struct stat status {};
    if (name == "." || name == "..") continue;
    if (::fstatat(descriptor, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    entries.push_back({name, kind_of(status.st_mode)});
  }
  return entries;
}

void empty_directory(int descriptor, const std::string& path, dev_t device) {
  for (const DirectoryEntry& entry : list_descriptor(descriptor, path)) {
    const std::string inner_path = path + "/" + entry.name;
    if (entry.kind == FileKind::directory) {
      const int inner = ::openat(descriptor, entry.name.c_str(), kDirectory | O_NOFOLLOW);
      if (inner < 0 && errno == ENOENT) continue;
      if (inner < 0) throw system_error(inner_path, "cannot open", errno);
      const Closer closer{inner};
      struct stat status {};
      if (::fstat(inner, &status) != 0 || status.st_dev != device) continue;
      empty_directory(inner, inner_path, device);
    }
    const int how = entry.kind == FileKind::directory ? AT_REMOVEDIR : 0;
    if (::unlinkat(descriptor, entry.name.c_str(), how) != 0 && errno != ENOENT) {
      throw system_error(inner_path, "cannot remove", errno);
    }
  }
}

bool is_component(const std::string& name) {
  return name.find('/') == std::string::npos && unsafe_path(name).empty();
}

}  // namespace

SafeDirectory::SafeDirectory(const std::string& path)
    : descriptor_(::open(path.c_str(), kDirectory)), path_(path) {
  if (descriptor_ < 0) throw system_error(path, "cannot open", errno);
}

SafeDirectory::~SafeDirectory() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

SafeDirectory::SafeDirectory(SafeDirectory&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

SafeDirectory& SafeDirectory::operator=(SafeDirectory&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

Ownership SafeDirectory::ownership() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) throw system_error(path_, "cannot stat", errno);
  return ownership_of(status);
}

uint64_t SafeDirectory::device() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) throw system_error(path_, "cannot stat", errno);
  return status.st_dev;
}

void SafeDirectory::set_mode(uint32_t mode) const {
  if (::fchmod(descriptor_, mode) != 0) throw system_error(path_, "cannot set permissions", errno);
}

void SafeDirectory::set_group(gid_t group) const {
  if (::fchown(descriptor_, static_cast<uid_t>(-1), group) != 0) {
    throw system_error(path_, "cannot give it to the group", errno);
  }
}

/// What others wrote, a claim say, may say anything.
const char* SafeDirectory::component(const std::string& name) const {
  if (is_component(name)) return name.c_str();
  throw Error(ErrorKind::corrupt, fmt::format("{}: '{}' is no name of a file in it",
                                              printable(path_), printable(name)));
}

std::optional<SafeDirectory> SafeDirectory::find(const std::string& name) const {
  const int found = ::openat(descriptor_, component(name), kDirectory | O_NOFOLLOW);
  if (found >= 0) return SafeDirectory(found, shown(name));
  if (errno == ENOENT) return std::nullopt;
  if (errno == ELOOP || errno == ENOTDIR) {
    throw Error(ErrorKind::permission,
                fmt::format("{}: is a link or a file where a directory should be: somebody has put "
                            "it there; remove it, or choose another place",
                            printable(shown(name))));
  }
  throw system_error(shown(name), "cannot open", errno);
}

SafeDirectory SafeDirectory::make(const std::string& name, uint32_t mode) const {
  for (;;) {
    if (auto found = find(name)) return std::move(*found);
    if (::mkdirat(descriptor_, component(name), mode & 0777U) == 0) {
      auto made = find(name);
      if (!made) continue;
      // As asked for, whatever the umask.
      if (made->ownership().user == ::geteuid()) made->set_mode(mode);
      return std::move(*made);
    }
    if (errno != EEXIST) throw system_error(shown(name), "cannot create directory", errno);
  }
}

SafeDirectory SafeDirectory::make_parents(const std::string& path, uint32_t mode) const {
  const int own = ::openat(descriptor_, ".", kDirectory);
  if (own < 0) throw system_error(path_, "cannot open", errno);
  SafeDirectory at(own, path_);
  size_t begin = 0;
  for (size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', begin)) {
    if (slash > begin) at = at.make(path.substr(begin, slash - begin), mode);
    begin = slash + 1;
  }
  return at;
}

std::vector<DirectoryEntry> SafeDirectory::list() const {
  return list_descriptor(descriptor_, path_);
}

std::optional<FileInfo> SafeDirectory::info(const std::string& name) const {
  struct stat status {};
  if (name != "." && !is_component(name)) return std::nullopt;
  if (::fstatat(descriptor_, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return std::nullopt;
    throw system_error(shown(name), "cannot stat", errno);
  }
  FileInfo info;
  info.kind = kind_of(status.st_mode);
  info.size = static_cast<uint64_t>(status.st_size);
  info.modified_ns = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  info.mode = status.st_mode & 07777U;
  info.device = status.st_dev;
  info.inode = status.st_ino;
  return info;
}

std::optional<Ownership> SafeDirectory::ownership(const std::string& name) const {
  struct stat status {};
  if (::fstatat(descriptor_, component(name), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return std::nullopt;
  return ownership_of(status);
}

int SafeDirectory::create(const std::string& name, uint32_t mode) const {
  const int made = ::openat(descriptor_, component(name),
                            O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (made < 0 && errno != EEXIST) throw system_error(shown(name), "cannot create", errno);
  if (made >= 0) (void)::fchmod(made, mode);  // whatever the umask
  return made;
}

void SafeDirectory::give_file(const std::string& name, gid_t group, uint32_t mode) const {
  const int file =
      ::openat(descriptor_, component(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) throw system_error(shown(name), "cannot open", errno);
  const Closer closer{file};
  if (::fchown(file, static_cast<uid_t>(-1), group) != 0 || ::fchmod(file, mode) != 0) {
    throw system_error(shown(name), "cannot give it to the group", errno);
  }
}

bool SafeDirectory::mark(const std::string& name, const std::string& text) const {
  if (::symlinkat(text.c_str(), descriptor_, component(name)) == 0) return true;
  if (errno != EEXIST) throw system_error(shown(name), "cannot create", errno);
  return false;
}

std::optional<std::string> SafeDirectory::read_mark(const std::string& name) const {
  std::array<char, PATH_MAX> text{};
  const ssize_t length = ::readlinkat(descriptor_, component(name), text.data(), text.size());
  if (length < 0) return std::nullopt;
  return std::string(text.data(), static_cast<size_t>(length));
}

std::optional<std::string> SafeDirectory::read(const std::string& name, uint64_t limit) const {
  const int file =
      ::openat(descriptor_, component(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) {
    if (errno == ENOENT) return std::nullopt;
    throw system_error(shown(name), "cannot open", errno);
  }
  const Closer closer{file};
  std::string text;
  std::array<char, 4096> piece{};
  while (text.size() <= limit) {
    const ssize_t got = ::read(file, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw system_error(shown(name), "cannot read", errno);
    if (got == 0) return text;
    text.append(piece.data(), static_cast<size_t>(got));
  }
  throw Error(ErrorKind::corrupt, printable(shown(name)) + ": is too large for such a file");
}

bool SafeDirectory::touch(const std::string& name) const {
  return ::utimensat(descriptor_, component(name), nullptr, AT_SYMLINK_NOFOLLOW) == 0 ||
         errno != ENOENT;
}

void SafeDirectory::remove(const std::string& name) const {
  if (::unlinkat(descriptor_, component(name), 0) != 0 && errno != ENOENT) {
    throw system_error(shown(name), "cannot remove", errno);
  }
}

void SafeDirectory::remove_empty(const std::string& name) const {
  if (::unlinkat(descriptor_, component(name), AT_REMOVEDIR) == 0) return;
  if (errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST) return;
  throw system_error(shown(name), "cannot remove", errno);
}

void SafeDirectory::remove_tree(const std::string& name) const {
  const std::optional<FileInfo> there = info(name);
  if (!there) return;
  if (there->kind != FileKind::directory) return remove(name);
  const std::optional<SafeDirectory> inner = find(name);
  if (!inner || inner->device() != device()) return;
  empty_directory(inner->descriptor_, inner->path_, inner->device());
  if (::unlinkat(descriptor_, component(name), AT_REMOVEDIR) != 0 && errno != ENOENT) {
    throw system_error(shown(name), "cannot remove", errno);
  }
}

void SafeDirectory::remove_contents() const {
  for (const DirectoryEntry& entry : list()) remove_tree(entry.name);
}

void SafeDirectory::rename(const std::string& name, const SafeDirectory& to,
                           const std::string& new_name) const {
  if (::renameat(descriptor_, component(name), to.descriptor_, component(new_name)) != 0) {
    throw system_error(to.shown(new_name), "cannot rename into place", errno);
  }
}

void SafeDirectory::sync() const {
  // Some network file systems refuse to sync a directory; the rename is then as safe as it gets.
  if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != EBADF) {
    throw system_error(path_, "cannot sync", errno);
  }
}

int64_t SafeDirectory::touch() const {
  struct stat status {};
  if (::futimens(descriptor_, nullptr) != 0 || ::fstat(descriptor_, &status) != 0) {
    return time_of_day_ns();
  }
  return int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

}  // namespace stoker
