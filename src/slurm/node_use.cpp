// SPDX-License-Identifier: Apache-2.0
#include "slurm/node_use.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <map>

#include "base/json.h"
#include "os/file_system.h"
#include "os/node.h"
#include "os/process_tree.h"

namespace stoker {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The value of a variable among those of a process, each of which ends in a null byte.
std::string value_of(const std::string& variables, const std::string& name) {
  const std::string wanted = '\0' + name + '=';
  const size_t at = ('\0' + variables).find(wanted);
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 1;
  return variables.substr(begin, variables.find('\0', begin) - begin);
}

/// Where several nodes share a host, as in tests, each has its own processes.
bool belongs(const std::string& pid, const std::string& job, const std::string& node) {
  const std::string variables = read_text("/proc/" + pid + "/environ");
  if (value_of(variables, "SLURM_JOB_ID") != job) return false;
  const std::string theirs = value_of(variables, "SLURMD_NODENAME");
  return theirs.empty() || theirs == node;
}

std::optional<uint64_t> number_behind(const std::string& text, const std::string& name) {
  const size_t at = ("\n" + text).find("\n" + name + " ");
  if (at == std::string::npos) return std::nullopt;
  uint64_t value = 0;
  const char* begin = text.data() + at + name.size() + 1;
  if (std::from_chars(begin, text.data() + text.size(), value).ec != std::errc()) {
    return std::nullopt;
  }
  return value;
}

std::optional<uint64_t> number_in(const std::string& path) {
  return number_behind("value " + read_text(path), "value");
}

}  // namespace

void add_job_cgroup(const std::string& job, NodeUse& use, const std::string& root) {
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const bool second = line.starts_with("0::");
    const size_t path = line.find(":/");
    const size_t at = line.find("/job_" + job + "/");
    if (at == std::string::npos || path == std::string::npos ||
        (!second && line.find(":memory:") == std::string::npos)) {
      continue;
    }
    const std::string group =
        root + "/sys/fs/cgroup" + (second ? "" : "/memory") +
        line.substr(path + 1, at - path + std::string("/job_").size() - 1 + job.size());
    const std::string stat = read_text(group + "/memory.stat");
    const auto cache = number_behind(stat, second ? "file" : "total_cache");
    const auto shared = number_behind(stat, second ? "shmem" : "total_shmem");
    // Shared memory is counted with files, and is needed all the same.
    if (cache) use.page_cache = *cache - std::min(*cache, shared.value_or(0));
    use.limit = number_in(group + (second ? "/memory.max" : "/memory.limit_in_bytes"));
  }
}

NodeUse look_at_node(const std::string& job) {
  NodeUse use;
  use.node = environment("SLURMD_NODENAME");
  if (use.node.empty()) use.node = host_name();
  use.time_s = static_cast<double>(monotonic_ns()) * 1e-9;
  std::map<pid_t, ProcessUse> found;
  const ProcessTree tree;
  for (const DirectoryEntry& entry : real_file_system().list("/proc")) {
    pid_t pid = 0;
    const std::string& name = entry.name;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failed != std::errc() || end != name.data() + name.size()) continue;
    if (pid == ::getpid() || found.contains(pid) || !belongs(name, job, use.node)) continue;
    for (ProcessUse& process : tree.look(pid, true)) {
      if (process.pid != ::getpid()) found.insert_or_assign(process.pid, std::move(process));
    }
  }
  for (const auto& [pid, process] : found) {
    const uint64_t memory = process.anonymous + process.shared + process.mapped;
    use.cpu_s += process.cpu_s;
    use.memory += memory;
    use.largest.push_back({pid, process.name, process.cpu_s, memory, process.threads});
  }
  use.processes = found.size();
  std::sort(use.largest.begin(), use.largest.end(),
            [](const auto& one, const auto& other) { return one.cpu_s > other.cpu_s; });
  constexpr size_t kShown = 8;
  if (use.largest.size() > kShown) use.largest.resize(kShown);
  add_job_cgroup(job, use);
  return use;
}

std::string to_line(const NodeUse& use) {
  Json json = {{"node", use.node},         {"time_s", use.time_s},      {"cpu_s", use.cpu_s},
               {"memory", use.memory},     {"page_cache", nullptr},     {"limit", nullptr},
               {"largest", Json::array()}, {"processes", use.processes}};
  if (use.page_cache) json["page_cache"] = *use.page_cache;
  if (use.limit) json["limit"] = *use.limit;
  for (const NodeUse::Process& process : use.largest) {
    json["largest"].push_back({{"pid", process.pid},
                               {"name", process.name},
                               {"cpu_s", process.cpu_s},
                               {"memory", process.memory},
                               {"threads", process.threads}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::optional<NodeUse> node_use_from(std::string_view line) {
  try {
    const Json json = parse_json(line);
    NodeUse use;
    use.node = json.at("node").get<std::string>();
    use.time_s = json.at("time_s").get<double>();
    use.cpu_s = json.at("cpu_s").get<double>();
    use.memory = checked<uint64_t>(json.at("memory"));
    use.processes = checked<uint64_t>(json.at("processes"));
    if (!json.at("page_cache").is_null()) use.page_cache = checked<uint64_t>(json["page_cache"]);
    if (!json.at("limit").is_null()) use.limit = checked<uint64_t>(json["limit"]);
    for (const Json& each : json.at("largest")) {
      use.largest.push_back({checked<int64_t>(each.at("pid")), each.at("name").get<std::string>(),
                             each.at("cpu_s").get<double>(), checked<uint64_t>(each.at("memory")),
                             checked<uint64_t>(each.at("threads"))});
    }
    return use;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace stoker
