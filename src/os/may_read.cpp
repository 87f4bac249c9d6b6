// SPDX-License-Identifier: Apache-2.0
#include "os/may_read.h"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <map>
#include <vector>

namespace stoker {
namespace {

std::vector<gid_t> ask_for_groups(uid_t user) {
  std::vector<char> room(1 << 16);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(user, &entry, room.data(), room.size(), &found) != 0 || found == nullptr) {
    return {};
  }
  int count = 64;
  std::vector<gid_t> groups(static_cast<size_t>(count));
  if (::getgrouplist(entry.pw_name, entry.pw_gid, groups.data(), &count) < 0) {
    groups.resize(static_cast<size_t>(std::max(count, 0)));
    if (::getgrouplist(entry.pw_name, entry.pw_gid, groups.data(), &count) < 0) return {};
  }
  groups.resize(static_cast<size_t>(std::max(count, 0)));
  return groups;
}

/// A directory service answers slowly, and a dataset has many links of few users. For each thread:
/// a lock could be held across a fork.
bool is_member(uid_t user, gid_t group) {
  static thread_local std::map<uid_t, std::vector<gid_t>> known;
  const auto [found, added] = known.try_emplace(user);
  if (added) found->second = ask_for_groups(user);
  return std::find(found->second.begin(), found->second.end(), group) != found->second.end();
}

/// `bits` as for others: S_IROTH, S_IXOTH.
bool lets(const std::string& path, uid_t user, mode_t bits) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || S_ISLNK(status.st_mode)) return false;
  if (status.st_uid == user) return (status.st_mode >> 6 & bits) == bits;
  const bool list = ::lgetxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) >= 0;
  // Members of the group have the group's bits, and not those of others. Who the members are may
  // not be known now.
  const mode_t both = status.st_mode >> 3 & status.st_mode;
  if (!list && is_member(user, status.st_gid)) return (status.st_mode >> 3 & bits) == bits;
  return (both & bits) == bits;
}

}  // namespace

bool may_read(uid_t user, const std::string& path) {
  if (!path.starts_with('/')) return false;
  for (size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1)) {
    if (!lets(path.substr(0, end), user, S_IXOTH)) return false;
  }
  return lets("/", user, S_IXOTH) && lets(path, user, S_IROTH);
}

}  // namespace stoker
