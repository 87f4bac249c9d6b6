// SPDX-License-Identifier: Apache-2.0
#include "os/node.h"

#include <limits.h>
#include <pwd.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
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

std::string node_name() {
  const std::string name = environment("SLURMD_NODENAME");
  return name.empty() ? host_name() : name;
}

std::string name_of_user(uint32_t user) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> room(16384);
  if (::getpwuid_r(user, &entry, room.data(), room.size(), &found) != 0 || found == nullptr) {
    return "";
  }
  return entry.pw_name;
}

std::string user_name() {
  const std::string name = name_of_user(::geteuid());
  return name.empty() ? std::to_string(::geteuid()) : name;
}

bool is_user(const std::string& name) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> room(16384);
  if (::getpwnam_r(name.c_str(), &entry, room.data(), room.size(), &found) == 0 &&
      found != nullptr) {
    return true;
  }
  uid_t number = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), number);
  return failed == std::errc() && end == name.data() + name.size() && !name_of_user(number).empty();
}

bool has_name(uint32_t user, const std::string& name) {
  const std::string known = name_of_user(user);
  return (known.empty() ? std::to_string(user) : known) == name;
}

std::string user_in_words(uint32_t user) {
  const std::string name = name_of_user(user);
  return name.empty() ? "user " + std::to_string(user) : name + " (" + std::to_string(user) + ")";
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
std::string state_directory() { return below_home("XDG_STATE_HOME", ".local/state"); }

}  // namespace stoker
