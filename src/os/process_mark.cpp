// SPDX-License-Identifier: Apache-2.0
#include "os/process_mark.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include "os/node.h"

namespace stoker {
namespace {

/// What the system says of a process.
struct ProcessFacts {
  char state = '?';   // 'T' where it is stopped, 'Z' where it has ended and was not waited for
  std::string start;  // in ticks since the host began
};

/// Nothing where it is hidden or gone.
std::optional<ProcessFacts> facts_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  // The name in the second field may hold anything, blanks and brackets too.
  const size_t behind_name = text.rfind(')');
  if (behind_name == std::string::npos) return std::nullopt;
  std::istringstream words(text.substr(behind_name + 1));
  ProcessFacts facts;
  constexpr int kStart = 20;
  for (int i = 0; i < kStart; ++i) {
    if (!(words >> facts.start)) return std::nullopt;
    if (i == 0) facts.state = facts.start[0];
  }
  return facts;
}

/// What a file in a directory of control groups says.
std::string group_says(const std::string& mount, const std::string& group, const char* name) {
  std::ifstream file(mount + group + "/" + name);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

/// Whether the control group of a process is frozen, by which Slurm suspends jobs where it tracks
/// processes by control groups. The process itself seems to sleep, or to wait for a disk.
bool is_frozen(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/cgroup", pid));
  for (std::string line; std::getline(file, line);) {  // NUMBER:CONTROLLERS:PATH
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers == "freezer" &&
        group_says("/sys/fs/cgroup/freezer", group, "freezer.state").starts_with("FROZEN")) {
      return true;
    }
    if (!controllers.empty()) continue;
    for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
      const std::string events = group_says(mount, group, "cgroup.events");
      if (events.find("frozen 1") != std::string::npos) return true;
    }
  }
  return false;
}

/// What makes numbers of processes comparable: host, its boot, the namespace they count in.
std::string scope() {
  std::string host = host_name();
  for (char& letter : host) {
    const bool plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                       (letter >= '0' && letter <= '9') || letter == '.' || letter == '-';
    if (!plain) letter = '_';
  }
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  file >> boot;
  std::array<char, 64> space{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", space.data(), space.size());
  std::string number;
  for (ssize_t i = 0; i < length; ++i) {
    const char letter = space[static_cast<size_t>(i)];
    if (letter >= '0' && letter <= '9') number += letter;
  }
  return fmt::format("{},{},{}", host, boot.substr(0, 8), number);
}

std::vector<std::string_view> parts_of(std::string_view mark) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= mark.size();) {
    const size_t end = std::min(mark.find(',', begin), mark.size());
    parts.push_back(mark.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

constexpr size_t kParts = 5;

/// 0 where it is no number.
pid_t number_in(std::string_view text) {
  pid_t pid = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), pid);
  return failed == std::errc() && end == text.data() + text.size() ? pid : 0;
}

}  // namespace

std::string this_process_mark() {
  const std::optional<ProcessFacts> facts = facts_of(::getpid());
  return fmt::format("{},{},{}", scope(), ::getpid(), facts ? facts->start : "");
}

Alive process_lives(std::string_view mark) {
  const std::vector<std::string_view> parts = parts_of(mark);
  if (parts.size() != kParts) return Alive::no;
  const pid_t pid = number_in(parts[3]);
  if (pid <= 0) return Alive::no;
  const std::string here = scope();
  const std::vector<std::string_view> own = parts_of(here);
  if (parts[0] != own[0]) return Alive::unknown;
  if (parts[1] != own[1]) return Alive::no;  // the host has been restarted since
  if (parts[2] != own[2]) return Alive::unknown;
  if (::kill(pid, 0) != 0 && errno != EPERM) return Alive::no;
  const std::optional<ProcessFacts> facts = facts_of(pid);
  if (!facts) return Alive::yes;  // hidden from us (hidepid), but there
  if (facts->state == 'Z' || facts->state == 'X') return Alive::no;
  return facts->start == parts[4] ? Alive::yes : Alive::no;
}

bool process_is_stopped(std::string_view mark) {
  if (process_lives(mark) != Alive::yes) return false;
  const pid_t pid = number_in(parts_of(mark)[3]);
  const std::optional<ProcessFacts> facts = facts_of(pid);
  return (facts && (facts->state == 'T' || facts->state == 't')) || is_frozen(pid);
}

std::string process_in_words(std::string_view mark) {
  const std::vector<std::string_view> parts = parts_of(mark);
  return parts.size() < kParts ? "a process" : fmt::format("process {} on {}", parts[3], parts[0]);
}

}  // namespace stoker
