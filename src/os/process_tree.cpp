// SPDX-License-Identifier: Apache-2.0
#include "os/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <map>
#include <string_view>

#include "os/node.h"

namespace stoker {
namespace {

/// All of a small file of /proc or /sys; nothing where it cannot be read.
std::string read_small(const std::string& path) {
  std::string text;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return text;
  char piece[4096];
  for (ssize_t got = 0; (got = ::read(descriptor, piece, sizeof piece)) > 0;) {
    text.append(piece, static_cast<size_t>(got));
  }
  ::close(descriptor);
  return text;
}

uint64_t number(std::string_view text) {
  const size_t begin = text.find_first_of("0123456789");
  if (begin == std::string_view::npos) return 0;
  uint64_t value = 0;
  std::from_chars(text.data() + begin, text.data() + text.size(), value);
  return value;
}

/// The number behind "name" at the begin of a line, which a colon or blanks may follow.
uint64_t value_of(std::string_view text, std::string_view name) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.starts_with(name) && line.size() > name.size() &&
        (line[name.size()] == ':' || line[name.size()] == ' ')) {
      return number(line.substr(name.size()));
    }
    at = end + 1;
  }
  return 0;
}

/// Numbers separated by blanks.
std::vector<pid_t> numbers(std::string_view text) {
  std::vector<pid_t> found;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(" \n"), text.size());
    if (end > 0) found.push_back(static_cast<pid_t>(number(text.substr(0, end))));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return found;
}

/// The fields behind the name, of which the first is the state: names may contain anything.
std::vector<std::string_view> fields_of(std::string_view stat) {
  std::vector<std::string_view> fields;
  const size_t end = stat.rfind(')');
  if (end == std::string_view::npos) return fields;
  stat.remove_prefix(std::min(end + 2, stat.size()));
  while (!stat.empty()) {
    const size_t blank = std::min(stat.find(' '), stat.size());
    fields.push_back(stat.substr(0, blank));
    stat.remove_prefix(std::min(blank + 1, stat.size()));
  }
  return fields;
}

ChildrenIo io_from(const std::string& text) {
  return {value_of(text, "rchar"), value_of(text, "read_bytes"), value_of(text, "write_bytes")};
}

constexpr uint64_t kKibi = 1024;

}  // namespace

ProcessTree::ProcessTree(std::string proc)
    : proc_(std::move(proc)),
      ticks_(static_cast<double>(::sysconf(_SC_CLK_TCK))),
      lists_children_(::access(fmt::format("{0}/{1}/task/{1}/children", proc_, ::getpid()).c_str(),
                               R_OK) == 0) {}

void ProcessTree::add_children(pid_t pid, std::vector<pid_t>& found) const {
  const std::string tasks = fmt::format("{}/{}/task", proc_, pid);
  DIR* directory = ::opendir(tasks.c_str());
  if (directory == nullptr) return;
  while (const dirent* entry = ::readdir(directory)) {
    if (entry->d_name[0] == '.') continue;
    const std::string text = read_small(fmt::format("{}/{}/children", tasks, entry->d_name));
    for (const pid_t child : numbers(text)) found.push_back(child);
  }
  ::closedir(directory);
}

/// By the parents of all processes, where the kernel does not list children.
std::vector<pid_t> ProcessTree::all_descendants(pid_t root) const {
  std::multimap<pid_t, pid_t> children;
  DIR* directory = ::opendir(proc_.c_str());
  if (directory == nullptr) return {};
  while (const dirent* entry = ::readdir(directory)) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    const auto fields = read_small(fmt::format("{}/{}/stat", proc_, entry->d_name));
    const auto parts = fields_of(fields);
    if (parts.size() > 1) {
      children.emplace(static_cast<pid_t>(number(parts[1])),
                       static_cast<pid_t>(number(entry->d_name)));
    }
  }
  ::closedir(directory);
  std::vector<pid_t> found = {root};
  for (size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = children.equal_range(found[i]);
    for (auto child = begin; child != end; ++child) found.push_back(child->second);
  }
  return found;
}

bool ProcessTree::look_at(pid_t pid, bool exact_memory, ProcessUse& use) const {
  const std::string own = fmt::format("{}/{}/", proc_, pid);
  const std::string stat = read_small(own + "stat");
  const auto fields = fields_of(stat);
  constexpr size_t kNeeded = 22;  // up to the resident pages
  if (fields.size() < kNeeded || fields[0] == "Z" || fields[0] == "X") return false;
  const size_t name = stat.find('(');
  use.pid = pid;
  use.name = stat.substr(name + 1, stat.rfind(')') - name - 1);
  use.parent = static_cast<pid_t>(number(fields[1]));
  uint64_t ticks = 0;
  for (size_t i = 11; i <= 14; ++i) ticks += number(fields[i]);
  use.cpu_s = static_cast<double>(ticks) / ticks_;
  use.threads = static_cast<uint32_t>(number(fields[17]));
  const std::string status = read_small(own + "status");
  use.anonymous = value_of(status, "RssAnon") * kKibi;
  use.mapped = value_of(status, "RssFile") * kKibi;
  use.shared = value_of(status, "RssShmem") * kKibi;
  use.context_switches =
      value_of(status, "voluntary_ctxt_switches") + value_of(status, "nonvoluntary_ctxt_switches");
  if (exact_memory) {
    const std::string rollup = read_small(own + "smaps_rollup");
    if (rollup.find("Pss_Anon") != std::string::npos) {
      use.anonymous = value_of(rollup, "Pss_Anon") * kKibi;
      use.mapped = value_of(rollup, "Pss_File") * kKibi;
      use.shared = value_of(rollup, "Pss_Shmem") * kKibi;
    }
  }
  const ChildrenIo io = io_from(read_small(own + "io"));
  use.read_calls_bytes = io.read_calls_bytes;
  use.read_disk_bytes = io.read_disk_bytes;
  use.write_disk_bytes = io.write_disk_bytes;
  return true;
}

std::vector<ProcessUse> ProcessTree::look(pid_t root, bool exact_memory) const {
  std::vector<pid_t> pids = {root};
  if (lists_children_) {
    for (size_t i = 0; i < pids.size(); ++i) add_children(pids[i], pids);
  } else {
    pids = all_descendants(root);
  }
  std::vector<ProcessUse> uses;
  for (const pid_t pid : pids) {
    ProcessUse use;
    if (look_at(pid, exact_memory, use)) uses.push_back(std::move(use));
  }
  return uses;
}

bool process_runs(pid_t pid, int64_t since_ns) {
  if (pid <= 0 || (::kill(pid, 0) != 0 && errno != EPERM)) return false;
  const std::string stat = read_small(fmt::format("/proc/{}/stat", pid));
  const auto fields = fields_of(stat);
  constexpr size_t kStart = 19;
  if (fields.size() <= kStart) return true;  // hidden from us (hidepid), but there
  if (fields[0] == "Z" || fields[0] == "X") return false;
  // The kernel counts from its boot, suspended time included, in ticks: hence the slack.
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const double started =
      static_cast<double>(number(fields[kStart])) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const double age = static_cast<double>(now.tv_sec) - started;
  const double needed =
      (static_cast<double>(monotonic_ns()) - static_cast<double>(since_ns)) * 1e-9;
  constexpr double kSlack = 2;
  return age + kSlack > needed;
}

ChildrenIo io_of_ended_children() {
  // The whole process's sum has what ended children had; what its threads did themselves is apart.
  const ChildrenIo all = io_from(read_small("/proc/self/io"));
  ChildrenIo own;
  if (DIR* directory = ::opendir("/proc/self/task")) {
    while (const dirent* entry = ::readdir(directory)) {
      if (entry->d_name[0] == '.') continue;
      const ChildrenIo thread =
          io_from(read_small(fmt::format("/proc/self/task/{}/io", entry->d_name)));
      own.read_calls_bytes += thread.read_calls_bytes;
      own.read_disk_bytes += thread.read_disk_bytes;
      own.write_disk_bytes += thread.write_disk_bytes;
    }
    ::closedir(directory);
  }
  const auto less = [](uint64_t a, uint64_t b) { return a > b ? a - b : 0; };
  return {less(all.read_calls_bytes, own.read_calls_bytes),
          less(all.read_disk_bytes, own.read_disk_bytes),
          less(all.write_disk_bytes, own.write_disk_bytes)};
}

CgroupMemory cgroup_memory(const std::string& root) {
  CgroupMemory memory;
  const std::string groups = read_small(root + "/proc/self/cgroup");
  const auto take = [&](const std::string& directory, const char* limit, const char* cache) {
    const std::string text = read_small(directory + "/" + limit);
    const uint64_t value = number(text);
    constexpr uint64_t kNone = uint64_t{1} << 60;  // version 1 writes the largest number for none
    if (value > 0 && value < kNone && (memory.limit == 0 || value < memory.limit)) {
      memory.limit = value;
    }
    if (memory.page_cache == 0) {
      memory.page_cache = value_of(read_small(directory + "/memory.stat"), cache);
    }
  };
  for (size_t at = 0; at < groups.size();) {
    const size_t end = std::min(groups.find('\n', at), groups.size());
    const std::string_view line(groups.data() + at, end - at);
    at = end + 1;
    const size_t last = line.rfind(':');
    if (last == std::string_view::npos) continue;
    std::string path(line.substr(last + 1));
    const bool second = line.starts_with("0::");
    if (!second && line.find("memory") == std::string_view::npos) continue;
    // A limit may be set anywhere above.
    for (;;) {
      take(root + (second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory") + path,
           second ? "memory.max" : "memory.limit_in_bytes", second ? "file" : "total_cache");
      const size_t slash = path.rfind('/');
      if (slash == std::string::npos || path.empty()) break;
      path.resize(slash);
    }
  }
  return memory;
}

}  // namespace stoker
