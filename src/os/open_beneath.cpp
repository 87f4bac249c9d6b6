// SPDX-License-Identifier: Apache-2.0
#include "os/open_beneath.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/inner_path.h"
#include "base/text.h"
#include "os/may_read.h"

namespace stoker {
namespace {

// As in <linux/openat2.h>, which machines of 2019 lack.
struct OpenHow {
  uint64_t flags = 0, mode = 0, resolve = 0;
};
constexpr uint64_t kNoMagicLinks = 0x02, kBeneath = 0x08;
constexpr long kOpenat2 = 437;

std::atomic<bool> lacks_openat2{false};

struct Closer {
  int descriptor;
  ~Closer() {
    if (descriptor >= 0) ::close(descriptor);
  }
};

/// -1 and errno. ENOSYS where the kernel, or what a container lets through, has no openat2().
int open_beneath(int root, const char* name, int flags) {
  if (lacks_openat2.load(std::memory_order_relaxed)) {
    errno = ENOSYS;
    return -1;
  }
  const OpenHow how{static_cast<uint64_t>(flags), 0, kBeneath | kNoMagicLinks};
  long file = -1;
  do {
    file = ::syscall(kOpenat2, root, name, &how, sizeof(how));
  } while (file < 0 && errno == EINTR);
  if (file < 0 && (errno == ENOSYS || errno == EPERM)) {
    lacks_openat2 = true;
    errno = ENOSYS;
  }
  return static_cast<int>(file);
}

std::string path_of_descriptor(int descriptor) {
  std::array<char, PATH_MAX> path{};
  const std::string link = fmt::format("/proc/self/fd/{}", descriptor);
  const ssize_t length = ::readlink(link.c_str(), path.data(), path.size());
  return length <= 0 ? "" : std::string(path.data(), static_cast<size_t>(length));
}

/// `path` is where the file was found; empty where that is not known.
bool may_follow(const struct stat& link, const struct stat& file, const std::string& path) {
  const uid_t us = ::geteuid();
  if (link.st_uid == us || link.st_uid == 0 || link.st_uid == file.st_uid) return true;
  if (file.st_uid != us && (file.st_mode & (S_IRGRP | S_IROTH)) != 0) return true;
  return may_read(link.st_uid, path);  // they gain nothing by it
}

}  // namespace

std::string blobs_of_snapshot(const std::string& real_directory) {
  constexpr std::string_view kSnapshots = "/snapshots/";
  const size_t at = real_directory.rfind(kSnapshots);
  return at == std::string::npos ? "" : real_directory.substr(0, at) + "/blobs/";
}

void OpenBeneath::without_openat2(bool lacking) { lacks_openat2 = lacking; }

OpenBeneath::~OpenBeneath() {
  if (const int root = root_.load(); root >= 0) ::close(root);
}

/// No lock: one could be held across a fork.
int OpenBeneath::root() {
  int known = root_.load(std::memory_order_acquire);
  if (known >= 0) return known;
  const int root = ::open(directory_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) throw system_error(directory_, "cannot open", errno);
  if (root_.compare_exchange_strong(known, root, std::memory_order_acq_rel)) return root;
  ::close(root);
  return known;
}

/// Whether another directory has the path now; it is used from here on, under the same number.
bool OpenBeneath::root_was_replaced(int root) const {
  const Closer fresh{::open(directory_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  struct stat was {
  }, now{};
  if (fresh.descriptor < 0 || ::fstat(root, &was) != 0 || ::fstat(fresh.descriptor, &now) != 0) {
    return false;
  }
  if (was.st_dev == now.st_dev && was.st_ino == now.st_ino) return false;
  return ::dup3(fresh.descriptor, root, O_CLOEXEC) >= 0;
}

int OpenBeneath::open(const std::string& name, int flags, Links links) {
  (void)inner_path(name, directory_);
  const int root = this->root();
  int file = try_open(root, name, flags, links);
  if (file < 0 && (errno == ENOENT || errno == ESTALE)) {
    const int cause = errno;
    file = root_was_replaced(root) ? try_open(root, name, flags, links) : -1;
    if (file < 0) errno = cause;
  }
  if (file < 0) throw system_error(path_of(name), "cannot open", errno);
  return file;
}

int OpenBeneath::try_open(int root, const std::string& name, int flags, Links links) const {
  const int file = open_beneath(root, name.c_str(), flags);
  if (file >= 0) return file;
  // Left by a link; or a rename nearby, by which the kernel is not sure; or no openat2() at all.
  const bool unsure = errno == EXDEV || errno == ELOOP || errno == EAGAIN || errno == ENOSYS;
  return unsure ? open_plainly(root, name, flags, links) : -1;
}

/// Looks at where it came to after it was opened.
int OpenBeneath::open_plainly(int root, const std::string& name, int flags, Links links) const {
  Closer file{::openat(root, name.c_str(), flags)};
  if (file.descriptor < 0) return -1;
  const std::string top = path_of_descriptor(root), whole = path_of_descriptor(file.descriptor);
  const bool known = !top.empty() && !whole.empty();  // nothing is where /proc is not mounted
  if (!known || !whole.starts_with(top == "/" ? top : top + "/")) {
    const std::string blobs = blobs_of_snapshot(top);
    const bool blob = known && !blobs.empty() && whole.starts_with(blobs);
    check_links(root, name, file.descriptor, blob ? Links::trusted : links, known ? whole : "");
  }
  return std::exchange(file.descriptor, -1);
}

/// Throws where a link of the path below the directory is not to be followed. `whole` is where it
/// led, outside of the directory; empty where that is not known.
void OpenBeneath::check_links(int root, const std::string& name, int file, Links links,
                              const std::string& whole) const {
  struct stat there {};
  bool any = false;
  if (::fstat(file, &there) != 0) throw system_error(path_of(name), "cannot stat", errno);
  for (size_t end = name.find('/');; end = name.find('/', end + 1)) {
    const std::string part = name.substr(0, end);
    struct stat link {};
    if (::fstatat(root, part.c_str(), &link, AT_SYMLINK_NOFOLLOW) != 0) {
      throw system_error(path_of(part), "cannot stat", errno);
    }
    any |= S_ISLNK(link.st_mode);
    const bool followed = links == Links::trusted && may_follow(link, there, whole);
    if (S_ISLNK(link.st_mode) && !followed) {
      throw Error(ErrorKind::permission,
                  fmt::format("{}: is a link of user {} that leads out of the dataset{}: not "
                              "followed; copy what is meant to the dataset",
                              printable(path_of(part)), link.st_uid,
                              links == Links::trusted ? ", to a file that they may not read" : ""));
    }
    if (end == std::string::npos) break;
  }
  if (any || whole.empty()) return;
  throw Error(ErrorKind::permission,
              fmt::format("{}: led out of the dataset while it was opened: somebody changes it",
                          printable(path_of(name))));
}

}  // namespace stoker
