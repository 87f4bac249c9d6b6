// SPDX-License-Identifier: Apache-2.0
#include "os/node.h"

#include <limits.h>
#include <pwd.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace stoker {
namespace {

int64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

int64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }

int64_t time_of_day_ns() { return clock_ns(CLOCK_REALTIME); }

int64_t thread_cpu_ns() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

std::string user_name() {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> room(16384);
  const uid_t user = ::geteuid();
  if (::getpwuid_r(user, &entry, room.data(), room.size(), &found) == 0 && found != nullptr) {
    return entry.pw_name;
  }
  return std::to_string(user);
}

std::string own_program(const std::string& otherwise) {
  std::error_code failed;
  const std::string path = std::filesystem::read_symlink("/proc/self/exe", failed).string();
  return failed ? otherwise : path;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

namespace {

/// Not a directory that others write to: what is in it is believed.
std::string home_of_user() {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> room(16384);
  const int failed = ::getpwuid_r(::geteuid(), &entry, room.data(), room.size(), &found);
  return failed == 0 && found != nullptr ? entry.pw_dir : "/nonexistent";
}

std::string below_home(const char* variable, const char* name) {
  const std::string directory = environment(variable);
  if (!directory.empty()) return directory;
  std::string home = environment("HOME");
  if (home.empty()) home = home_of_user();
  return home + "/" + name;
}

}  // namespace

std::string cache_directory() { return below_home("XDG_CACHE_HOME", ".cache"); }
std::string config_directory() { return below_home("XDG_CONFIG_HOME", ".config"); }

}  // namespace stoker
