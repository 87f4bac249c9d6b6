// SPDX-License-Identifier: Apache-2.0
// Files that are opened, read and written.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <vector>

#include "storage.h"

namespace stoker {
namespace {

using Clock = SharedLink::Clock;

/// The kernel caches and gathers: what lies below is opened without O_DIRECT, and to be read where
/// only part of a page was written; where bytes go that are appended, the kernel says itself.
int flags_below(int flags) {
  const int access = (flags & O_ACCMODE) == O_WRONLY ? O_RDWR : flags & O_ACCMODE;
  return access | (flags & ~(O_ACCMODE | O_DIRECT | O_APPEND | O_NOFOLLOW)) | O_CLOEXEC;
}

void on_open(fuse_req_t request, fuse_ino_t number, fuse_file_info* file) {
  Storage& storage = storage_of(request);
  if (&inode_of(request, number) == &storage.operations) {
    if ((file->flags & O_ACCMODE) != O_RDONLY) {
      errno = EACCES;
      return reply_status(request, false);
    }
    file->fh = reinterpret_cast<uint64_t>(new std::string(storage.operations_text()));
    file->direct_io = 1;  // nobody knows its size before
    fuse_reply_open(request, file);
    return;
  }
  pay(request, Kind::open);
  const int opened = ::open(path_of(request, number).c_str(), flags_below(file->flags));
  if (opened < 0) return reply_status(request, false);
  file->fh = static_cast<uint64_t>(opened);
  file->keep_cache = 1;
  fuse_reply_open(request, file);
}

void on_create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode,
               fuse_file_info* file) {
  pay(request, Kind::create);
  const int opened = ::openat(descriptor_of(request, parent), name,
                              flags_below(file->flags) | O_CREAT | O_NOFOLLOW, mode);
  const auto entry = opened < 0 ? std::nullopt : find(request, parent, name);
  if (!entry) {
    const int cause = errno;
    if (opened >= 0) ::close(opened);
    fuse_reply_err(request, cause);
    return;
  }
  file->fh = static_cast<uint64_t>(opened);
  file->keep_cache = 1;
  fuse_reply_create(request, &*entry, file);
}

void on_read(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset,
             fuse_file_info* file) {
  Storage& storage = storage_of(request);
  if (&inode_of(request, number) == &storage.operations) {
    const auto& text = *reinterpret_cast<const std::string*>(file->fh);
    const size_t begin = std::min(static_cast<size_t>(offset), text.size());
    fuse_reply_buf(request, text.data() + begin, std::min(size, text.size() - begin));
    return;
  }
  const Clock::time_point begin = Clock::now();
  thread_local std::vector<char> buffer(kLargestRequest);
  buffer.resize(std::max(buffer.size(), size));
  const ssize_t length = ::pread(static_cast<int>(file->fh), buffer.data(), size, offset);
  if (length < 0) return reply_status(request, false);
  pay_data(storage, Kind::read, begin, static_cast<uint64_t>(length));
  storage.read_bytes += static_cast<uint64_t>(length);
  fuse_reply_buf(request, buffer.data(), static_cast<size_t>(length));
}

void on_write(fuse_req_t request, fuse_ino_t, const char* bytes, size_t size, off_t offset,
              fuse_file_info* file) {
  Storage& storage = storage_of(request);
  const Clock::time_point begin = Clock::now();
  const ssize_t length = ::pwrite(static_cast<int>(file->fh), bytes, size, offset);
  if (length < 0) return reply_status(request, false);
  pay_data(storage, Kind::write, begin, static_cast<uint64_t>(length));
  storage.written_bytes += static_cast<uint64_t>(length);
  fuse_reply_write(request, static_cast<size_t>(length));
}

void on_release(fuse_req_t request, fuse_ino_t number, fuse_file_info* file) {
  if (&inode_of(request, number) == &storage_of(request).operations) {
    delete reinterpret_cast<std::string*>(file->fh);
  } else {
    ::close(static_cast<int>(file->fh));
  }
  fuse_reply_err(request, 0);
}

/// What lies below is no disk that has to be waited for: the request's latency is the cost.
void on_fsync(fuse_req_t request, fuse_ino_t, int, fuse_file_info*) {
  pay_data(storage_of(request), Kind::sync, Clock::now(), 0);
  fuse_reply_err(request, 0);
}

}  // namespace

void add_data(fuse_lowlevel_ops& table) {
  table.open = on_open;
  table.create = on_create;
  table.read = on_read;
  table.write = on_write;
  table.release = on_release;
  table.fsync = on_fsync;
  table.fsyncdir = on_fsync;
}

}  // namespace stoker
