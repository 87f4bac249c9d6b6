// SPDX-License-Identifier: Apache-2.0
// Requests about names and attributes, each of which costs the same.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <string_view>
#include <vector>

#include "storage.h"

namespace stoker {
namespace {

constexpr std::string_view kOperations = ".operations";

void reply_found(fuse_req_t request, fuse_ino_t parent, const char* name) {
  const auto entry = find(request, parent, name);
  entry ? fuse_reply_entry(request, &*entry) : fuse_reply_err(request, errno);
}

struct stat operations_attributes() {
  struct stat attributes {};
  attributes.st_mode = S_IFREG | 0444;
  attributes.st_nlink = 1;
  attributes.st_uid = ::getuid();
  attributes.st_gid = ::getgid();
  return attributes;
}

void on_lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  if (parent == FUSE_ROOT_ID && name == kOperations) {
    fuse_entry_param entry{};
    entry.ino = reinterpret_cast<fuse_ino_t>(&storage_of(request).operations);
    entry.attr = operations_attributes();
    fuse_reply_entry(request, &entry);
    return;
  }
  pay(request, Kind::lookup);
  reply_found(request, parent, name);
}

void on_forget(fuse_req_t request, fuse_ino_t number, uint64_t references) {
  storage_of(request).drop(number, references);
  fuse_reply_none(request);
}

void on_forget_multi(fuse_req_t request, size_t count, fuse_forget_data* forgotten) {
  for (size_t i = 0; i < count; ++i) {
    storage_of(request).drop(forgotten[i].ino, forgotten[i].nlookup);
  }
  fuse_reply_none(request);
}

void reply_attributes(fuse_req_t request, fuse_ino_t number) {
  struct stat attributes {};
  const int found = ::fstat(descriptor_of(request, number), &attributes);
  if (found != 0) return reply_status(request, false);
  fuse_reply_attr(request, &attributes, storage_of(request).settings.remember_s);
}

void on_getattr(fuse_req_t request, fuse_ino_t number, fuse_file_info*) {
  if (&inode_of(request, number) == &storage_of(request).operations) {
    const struct stat attributes = operations_attributes();
    fuse_reply_attr(request, &attributes, 0);
    return;
  }
  pay(request, Kind::getattr);
  reply_attributes(request, number);
}

timespec chosen_time(int set, int to_this, int to_now, timespec given) {
  if ((set & to_now) != 0) return {0, UTIME_NOW};
  return (set & to_this) != 0 ? given : timespec{0, UTIME_OMIT};
}

void on_setattr(fuse_req_t request, fuse_ino_t number, struct stat* wanted, int set,
                fuse_file_info*) {
  pay(request, Kind::setattr);
  const std::string path = path_of(request, number);
  bool good = true;
  if ((set & FUSE_SET_ATTR_MODE) != 0) good = ::chmod(path.c_str(), wanted->st_mode) == 0;
  if (good && (set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0) {
    const uid_t user = (set & FUSE_SET_ATTR_UID) != 0 ? wanted->st_uid : static_cast<uid_t>(-1);
    const gid_t group = (set & FUSE_SET_ATTR_GID) != 0 ? wanted->st_gid : static_cast<gid_t>(-1);
    const int named = descriptor_of(request, number);
    good = ::fchownat(named, "", user, group, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == 0;
  }
  if (good && (set & FUSE_SET_ATTR_SIZE) != 0) {
    good = ::truncate(path.c_str(), wanted->st_size) == 0;
  }
  constexpr int kTimes =
      FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW;
  if (good && (set & kTimes) != 0) {
    const std::array<timespec, 2> times = {
        chosen_time(set, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW, wanted->st_atim),
        chosen_time(set, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW, wanted->st_mtim)};
    good = ::utimensat(AT_FDCWD, path.c_str(), times.data(), 0) == 0;
  }
  good ? reply_attributes(request, number) : reply_status(request, false);
}

void on_mkdir(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  pay(request, Kind::create);
  const bool good = ::mkdirat(descriptor_of(request, parent), name, mode) == 0;
  good ? reply_found(request, parent, name) : reply_status(request, false);
}

void on_symlink(fuse_req_t request, const char* target, fuse_ino_t parent, const char* name) {
  pay(request, Kind::create);
  const bool good = ::symlinkat(target, descriptor_of(request, parent), name) == 0;
  good ? reply_found(request, parent, name) : reply_status(request, false);
}

void on_readlink(fuse_req_t request, fuse_ino_t number) {
  pay(request, Kind::getattr);
  std::array<char, PATH_MAX> target{};
  const ssize_t length =
      ::readlinkat(descriptor_of(request, number), "", target.data(), target.size() - 1);
  length < 0 ? fuse_reply_err(request, errno) : fuse_reply_readlink(request, target.data());
}

void on_unlink(fuse_req_t request, fuse_ino_t parent, const char* name) {
  pay(request, Kind::remove);
  reply_status(request, ::unlinkat(descriptor_of(request, parent), name, 0) == 0);
}

void on_rmdir(fuse_req_t request, fuse_ino_t parent, const char* name) {
  pay(request, Kind::remove);
  reply_status(request, ::unlinkat(descriptor_of(request, parent), name, AT_REMOVEDIR) == 0);
}

void on_rename(fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
               const char* new_name, unsigned flags) {
  pay(request, Kind::remove);
  const int from = descriptor_of(request, parent);
  const int to = descriptor_of(request, new_parent);
  reply_status(request, ::renameat2(from, name, to, new_name, flags) == 0);
}

void on_statfs(fuse_req_t request, fuse_ino_t) {
  const Storage& storage = pay(request, Kind::statfs);
  struct statvfs facts {};
  const bool good = ::fstatvfs(storage.root.descriptor, &facts) == 0;
  good ? fuse_reply_statfs(request, &facts) : fuse_reply_err(request, errno);
}

void on_opendir(fuse_req_t request, fuse_ino_t number, fuse_file_info* file) {
  pay(request, Kind::list);
  const std::string path = path_of(request, number);
  DIR* directory = ::opendir(path.c_str());
  if (directory == nullptr) return reply_status(request, false);
  file->fh = reinterpret_cast<uint64_t>(directory);
  fuse_reply_open(request, file);
}

void on_readdir(fuse_req_t request, fuse_ino_t, size_t size, off_t offset, fuse_file_info* file) {
  pay(request, Kind::list);
  auto* directory = reinterpret_cast<DIR*>(file->fh);
  ::seekdir(directory, offset);
  std::vector<char> buffer(size);
  size_t used = 0;
  while (const dirent* entry = ::readdir(directory)) {
    struct stat attributes {};
    attributes.st_ino = entry->d_ino;
    attributes.st_mode = static_cast<mode_t>(entry->d_type) << 12;
    const size_t needed = fuse_add_direntry(request, buffer.data() + used, size - used,
                                            entry->d_name, &attributes, entry->d_off);
    if (needed > size - used) break;
    used += needed;
  }
  fuse_reply_buf(request, buffer.data(), used);
}

void on_releasedir(fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  ::closedir(reinterpret_cast<DIR*>(file->fh));
  fuse_reply_err(request, 0);
}

}  // namespace

void add_names(fuse_lowlevel_ops& table) {
  table.lookup = on_lookup;
  table.forget = on_forget;
  table.forget_multi = on_forget_multi;
  table.getattr = on_getattr;
  table.setattr = on_setattr;
  table.readlink = on_readlink;
  table.mkdir = on_mkdir;
  table.symlink = on_symlink;
  table.unlink = on_unlink;
  table.rmdir = on_rmdir;
  table.rename = on_rename;
  table.statfs = on_statfs;
  table.opendir = on_opendir;
  table.readdir = on_readdir;
  table.releasedir = on_releasedir;
}

}  // namespace stoker
