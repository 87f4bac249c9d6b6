// SPDX-License-Identifier: Apache-2.0
#include "dataset/index_trust.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "os/node.h"
#include "os/output_file.h"
#include "os/user_namespace.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

bool is_ours(const struct stat& status, const std::string& path) {
  if (status.st_uid == 0) return true;
  if (status.st_uid != ::geteuid()) return false;
  if (!is_any_unmapped_user(status.st_uid)) return true;
  // This user is one of those that have this number: only an owner may write there.
  return S_ISDIR(status.st_mode) && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
         ::access(path.c_str(), W_OK) == 0;
}

/// Whether what `entry` is came from somebody who may change all that is in `parent`.
bool comes_from_owner(const struct stat& parent, const struct stat& entry,
                      const std::string& path) {
  const bool same = entry.st_uid == parent.st_uid && !is_any_unmapped_user(entry.st_uid);
  if (same || is_ours(entry, path)) return true;
  const bool sticky = (parent.st_mode & S_ISVTX) != 0;
  return !sticky || (parent.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// Where stoker keeps what it can make again: above all indexes of the cache.
std::string top_of_cache() { return (fs::path(cache_directory()) / "stoker").string(); }

}  // namespace

bool is_trusted_index(const std::string& root, const std::string& directory, IndexUse use) {
  struct stat parent {};
  if (::stat(root.c_str(), &parent) != 0) return true;  // opening it says why
  fs::path path = root;
  for (const fs::path& name : fs::path(directory).lexically_relative(root)) {
    path /= name;
    struct stat entry {
    }, there{};
    if (::lstat(path.c_str(), &entry) != 0 || ::stat(path.c_str(), &there) != 0) {
      return !S_ISLNK(entry.st_mode);  // not there yet
    }
    // Not even one of ours: it may have come out of an archive.
    if (S_ISLNK(entry.st_mode) && use == IndexUse::write) return false;
    if (!comes_from_owner(parent, entry, path) || !comes_from_owner(parent, there, path)) {
      return false;
    }
    parent = there;
  }
  return true;
}

bool is_own_cache(const std::string& directory) {
  const std::string top = top_of_cache();
  fs::path path = top;
  const auto ours = [](const fs::path& place) {
    struct stat status {};
    return ::stat(place.c_str(), &status) != 0 || is_ours(status, place);
  };
  if (!ours(path)) return false;
  for (const fs::path& name : fs::path(directory).lexically_relative(top)) {
    path /= name;
    if (!ours(path)) return false;
  }
  return true;
}

void make_own_cache(const std::string& directory) {
  const std::string top = top_of_cache();
  if (!fs::exists(top)) {
    make_directories(fs::path(top).parent_path().string());
    if (::mkdir(top.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
      throw system_error(top, "cannot create directory", errno);
    }
  }
  if (is_own_cache(directory)) return;
  throw Error(
      ErrorKind::permission,
      fmt::format("{}: somebody else has made this directory or one above it, so nothing in "
                  "it can be trusted: set XDG_CACHE_HOME to a directory of your own",
                  printable(directory)));
}

}  // namespace stoker
