// SPDX-License-Identifier: Apache-2.0
#include "os/node.h"

#include <limits.h>
#include <pwd.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <vector>

namespace stoker {
namespace {

int64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::optional<std::string> name_of_user(uid_t user) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> room(16384);
  if (::getpwuid_r(user, &entry, room.data(), room.size(), &found) != 0 || found == nullptr) {
    return std::nullopt;
  }
  return entry.pw_name;
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

std::string node_name() {
  const std::string name = environment("SLURMD_NODENAME");
  return name.empty() ? host_name() : name;
}

std::string user_name() {
  const uid_t user = ::geteuid();
  return name_of_user(user).value_or(std::to_string(user));
}

std::string user_in_words(uid_t user) {
  const std::optional<std::string> name = name_of_user(user);
  return name ? *name + " (" + std::to_string(user) + ")" : "user " + std::to_string(user);
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

std::string below_home(const char* variable, const char* name) {
  const std::string directory = environment(variable);
  if (!directory.empty()) return directory;
  const std::string home = environment("HOME");
  return (home.empty() ? "/tmp" : home) + "/" + name;
}

}  // namespace

std::string cache_directory() { return below_home("XDG_CACHE_HOME", ".cache"); }
std::string config_directory() { return below_home("XDG_CONFIG_HOME", ".config"); }

}  // namespace stoker
