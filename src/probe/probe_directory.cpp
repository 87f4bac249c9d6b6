// SPDX-License-Identifier: Apache-2.0
#include "probe/probe_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/error.h"
#include "os/node.h"
#include "os/own_place.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = ".stoker-probe-";
constexpr time_t kDay = 24 * 60 * 60;

/// ".stoker-probe-HOST-": another host's locks cannot be seen on every file system.
std::string prefix_of_host() { return fmt::format("{}{}-", kPrefix, host_name()); }

bool is_leftover(const std::string& path, const std::string& name) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return false;
  if (info.st_uid != ::geteuid()) return false;
  if (!name.starts_with(prefix_of_host())) return std::time(nullptr) - info.st_mtime > kDay;
  try {
    const DirectoryLock nobody_holds_it(path);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void ProbeDirectory::remove_leftovers(const std::string& place) {
  std::error_code ignored;
  if (!fs::is_directory(place, ignored) || !others_who_rename(place).empty()) return;
  std::vector<std::string> found;
  for (fs::directory_iterator at(place, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(kPrefix) && is_leftover(at->path().string(), name)) {
      found.push_back(at->path().string());
    }
  }
  for (const std::string& path : found) fs::remove_all(path, ignored);
}

ProbeDirectory::ProbeDirectory(const std::string& place)
    : directory_((fs::path(place) / (prefix_of_host() + "XXXXXX")).string()),
      lock_(directory_.path()) {}

ProbeFile::ProbeFile(const std::string& path, bool write) {
  const int how = (write ? O_RDWR : O_RDONLY) | O_CLOEXEC;
  buffered_ = ::open(path.c_str(), how | (write ? O_CREAT | O_EXCL : 0), 0600);
  if (buffered_ < 0) throw system_error(path, write ? "cannot create" : "cannot open", errno);
  direct_ = ::open(path.c_str(), how | O_DIRECT);
  if (write) ::unlink(path.c_str());
}

ProbeFile ProbeFile::create(const std::string& directory) { return {directory + "/data", true}; }
ProbeFile ProbeFile::open(const std::string& path) { return {path, false}; }

ProbeFile::~ProbeFile() {
  if (buffered_ >= 0) ::close(buffered_);
  if (direct_ >= 0) ::close(direct_);
}

ProbeFile::ProbeFile(ProbeFile&& other) noexcept
    : buffered_(std::exchange(other.buffered_, -1)), direct_(std::exchange(other.direct_, -1)) {}

ProbeFile& ProbeFile::operator=(ProbeFile&& other) noexcept {
  std::swap(buffered_, other.buffered_);
  std::swap(direct_, other.direct_);
  return *this;
}

uint64_t ProbeFile::size() const {
  struct stat info {};
  return ::fstat(buffered_, &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

}  // namespace stoker
