// SPDX-License-Identifier: Apache-2.0
#include "os/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/text.h"

namespace stoker {

DirectoryLock::DirectoryLock(const std::string& directory, Wait wait)
    : descriptor_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0) throw system_error(directory, "cannot open", errno);
  const int how = wait == Wait::yes ? LOCK_EX : LOCK_EX | LOCK_NB;
  int failed = 0;
  do {
    failed = ::flock(descriptor_, how);
  } while (failed != 0 && errno == EINTR && wait == Wait::yes);
  if (failed != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor_);
    throw Error(ErrorKind::io,
                printable(directory) + ": another stoker is writing there: wait until it is done",
                EWOULDBLOCK);
  }
}

DirectoryLock::~DirectoryLock() { ::close(descriptor_); }

}  // namespace stoker
