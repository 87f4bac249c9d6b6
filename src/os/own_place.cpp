// SPDX-License-Identifier: Apache-2.0
#include "os/own_place.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "os/node.h"
#include "os/user_namespace.h"

namespace stoker {
namespace {

// Ours alone to write to; whether others may read follows from the umask.
constexpr mode_t kOwnMode = 0755;

struct stat status_of(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) throw system_error(path, "cannot stat", errno);
  return status;
}

std::string real_path(const std::string& path) {
  char real[PATH_MAX];
  if (::realpath(path.c_str(), real) == nullptr) throw system_error(path, "cannot open", errno);
  return real;
}

bool is_trusted(uid_t owner) {
  return owner == 0 || owner == ::geteuid() || is_any_unmapped_user(owner);
}

/// Which others may write to it: empty where none may.
std::string other_writers(const struct stat& status, const std::string& path) {
  if ((status.st_mode & S_IWOTH) != 0) return "everybody";
  if ((status.st_mode & S_IWGRP) != 0 && !is_private_group(status.st_gid, path)) {
    return "its group";
  }
  return "";
}

/// Of a directory that the components above it keep in its place. `last`: things are made in it.
std::string why_not_component(const std::string& path, const struct stat& status, bool last) {
  if (!is_trusted(status.st_uid)) {
    return fmt::format("{} belongs to {}", printable(path), user_in_words(status.st_uid));
  }
  const std::string writers = other_writers(status, path);
  if (writers.empty()) return "";
  // Only owners rename what is in a sticky directory: the caller asks who owns that.
  if (!last && (status.st_mode & S_ISVTX) != 0) return "";
  return fmt::format("{} is writable by {}", printable(path), writers);
}

/// As why_not_ours(); `last_is_sticky_enough`: for a directory whose entries are looked at next.
std::string why_not_chain(const std::string& path, bool last_is_sticky_enough) {
  const std::string real = real_path(path);
  for (size_t end = 1;; ++end) {
    end = std::min(real.find('/', end), real.size());
    const std::string component = real.substr(0, end);
    const bool last = end >= real.size();
    struct stat status {};
    if (::lstat(component.c_str(), &status) != 0) {
      return fmt::format("{} cannot be looked at", printable(component));
    }
    const std::string why = why_not_component(component, status, last && !last_is_sticky_enough);
    if (!why.empty() || last) return why;
  }
}

void make_own_directory(const std::string& path) {
  if (::mkdir(path.c_str(), kOwnMode) != 0 && errno != EEXIST) {
    throw system_error(path, "cannot create directory", errno);
  }
}

}  // namespace

bool is_private_group(gid_t group, const std::string& path) {
  if (::lgetxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) >= 0) return false;
  std::vector<char> room(1 << 16);
  struct group entry {};
  struct group* found = nullptr;
  if (::getgrgid_r(group, &entry, room.data(), room.size(), &found) != 0 || found == nullptr) {
    return false;
  }
  const std::string user = user_name();
  for (char** member = entry.gr_mem; *member != nullptr; ++member) {
    if (user != *member) return false;
  }
  passwd of_user{};
  passwd* known = nullptr;
  std::vector<char> more_room(1 << 16);
  return user == entry.gr_name &&
         ::getpwuid_r(::geteuid(), &of_user, more_room.data(), more_room.size(), &known) == 0 &&
         known != nullptr && of_user.pw_gid == group;
}

std::string others_who_rename(const std::string& directory) {
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0) throw system_error(directory, "cannot stat", errno);
  if (!is_trusted(status.st_uid) || is_any_unmapped_user(status.st_uid)) return "its owner";
  return (status.st_mode & S_ISVTX) != 0 ? "" : other_writers(status, directory);
}

std::string why_not_mine(const std::string& path) {
  const std::string real = real_path(path);
  const struct stat status = status_of(real);
  if (status.st_uid != ::geteuid()) {
    return fmt::format("{} belongs to {}", printable(real), user_in_words(status.st_uid));
  }
  if (std::string why = why_not_component(real, status, true); !why.empty()) return why;
  // Nobody but its owner may write to it now.
  if (is_any_unmapped_user(status.st_uid) && ::access(real.c_str(), W_OK) != 0) {
    return fmt::format("{} belongs to another user", printable(real));
  }
  return "";
}

std::string why_not_ours(const std::string& path) {
  const std::string why = why_not_chain(path, false);
  return why.empty() ? why_not_mine(path) : why;
}

namespace {

/// Why `name` in the current directory will not do. A link counts where this user has made it.
std::string why_not_here(const std::string& name) {
  const std::string why = why_not_chain(".", true);
  if (!why.empty()) return why;
  struct stat status {};
  if (::lstat(name.c_str(), &status) != 0) {
    if (errno == ENOENT) return "";
    throw system_error(name, "cannot stat", errno);
  }
  if (status.st_uid != ::geteuid()) {
    return fmt::format("{} belongs to {}", printable(real_path(".") + "/" + name),
                       user_in_words(status.st_uid));
  }
  return why_not_ours(name);
}

}  // namespace

OwnPlace find_own_place(const std::string& name, SeenBy seen_by) {
  OwnPlace place;
  const std::string here = "stoker-" + name;
  place.instead = why_not_here(here);
  place.path = place.instead.empty() ? real_path(".") + "/" + here
                                     : own_state_directory(seen_by) + "/" + name;
  return place;
}

OwnPlace make_own_place(const std::string& name) {
  OwnPlace place = find_own_place(name, SeenBy::this_node);
  make_own_directory(place.path);
  std::string why = why_not_ours(place.path);
  // Somebody may have been faster in a directory where everybody makes things.
  if (!why.empty() && place.instead.empty()) {
    place.path = own_state_directory(SeenBy::this_node) + "/" + name;
    place.instead = why;
    make_own_directory(place.path);
    why = why_not_ours(place.path);
  }
  if (!why.empty()) throw Error(ErrorKind::permission, why);
  place.path = real_path(place.path);
  return place;
}

void make_in_own_place(const std::string& path) {
  const std::string above = path.substr(0, path.find_last_of('/'));
  make_own_directory(above);
  if (const std::string why = why_not_ours(above); !why.empty()) {
    throw Error(ErrorKind::permission,
                fmt::format("{}: another user could replace it, because {}", printable(path), why));
  }
  // Where the umask lets others write to new files, they must not get as far as these.
  const mode_t hidden = ::umask(0);
  ::umask(hidden);
  const bool kept = (hidden & (S_IWGRP | S_IWOTH)) == (S_IWGRP | S_IWOTH);
  if (::mkdir(path.c_str(), kept ? kOwnMode : 0700) != 0) {
    throw system_error(path, "cannot create directory", errno);
  }
}

namespace {

std::string own_directory_at(const std::string& path) {
  for (size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1)) {
    struct stat status {};
    const std::string parent = path.substr(0, end);
    if (::stat(parent.c_str(), &status) != 0) make_own_directory(parent);
  }
  make_own_directory(path);
  const std::string why = why_not_ours(path);
  if (why.empty()) return real_path(path);
  throw Error(ErrorKind::permission,
              fmt::format("{}: another user could replace what is stored there, because {}: set "
                          "XDG_STATE_HOME to a directory of your own",
                          printable(path), why));
}

}  // namespace

std::string own_state_directory(SeenBy seen_by) {
  try {
    return own_directory_at(state_directory() + "/stoker");
  } catch (const Error&) {
    // Where other nodes look, a name in their /tmp may be anybody's.
    const std::string nodes = environment("SLURM_JOB_NUM_NODES");
    if (seen_by == SeenBy::all_nodes || (!nodes.empty() && nodes != "1")) throw;
    if (!environment("XDG_STATE_HOME").empty()) throw;  // the user's own choice
    const std::string runtime = environment("XDG_RUNTIME_DIR");
    for (const std::string& other :
         {runtime.empty() ? runtime : runtime + "/stoker",
          fmt::format("/tmp/stoker-state-{}", outer_user(::geteuid()))}) {
      try {
        if (!other.empty()) return own_directory_at(other);
      } catch (const Error&) {  // the first one says what to do
      }
    }
    throw;
  }
}

}  // namespace stoker
