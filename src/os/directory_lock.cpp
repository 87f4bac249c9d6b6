// SPDX-License-Identifier: Apache-2.0
#include "os/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/text.h"

namespace stoker {

DirectoryLock::DirectoryLock(const std::string& directory)
    : descriptor_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0) throw system_error(directory, "cannot open", errno);
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor_);
    throw Error(ErrorKind::io,
                printable(directory) + ": another stoker is writing there: wait until it is done",
                EWOULDBLOCK);
  }
}

DirectoryLock::~DirectoryLock() { ::close(descriptor_); }

}  // namespace stoker
