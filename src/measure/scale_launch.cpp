// SPDX-License-Identifier: Apache-2.0
#include "measure/scale_launch.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "base/error.h"
#include "base/parallel.h"
#include "os/gpu_use.h"

namespace stoker {
namespace {

constexpr std::string_view kHole = "{n}";

// PyTorch asks the first two for its own number of threads.
constexpr const char* kThreadVariables[] = {"OMP_NUM_THREADS", "MKL_NUM_THREADS",
                                            "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
                                            "TF_NUM_INTRAOP_THREADS"};

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool has_hole(const std::vector<std::string>& command) {
  return std::any_of(command.begin(), command.end(),
                     [](const std::string& word) { return word.find(kHole) != std::string::npos; });
}

/// Words of `command` that start processes, and the option that says how many.
struct Launcher {
  size_t words = 0;  // none: the command itself
  std::string_view option;
  std::vector<std::string_view> same;  // other spellings of it
};

Launcher launcher_of(const std::vector<std::string>& command) {
  const std::string_view first = base_name(command[0]);
  const Launcher torchrun{1, "--nproc-per-node", {"--nproc-per-node", "--nproc_per_node"}};
  if (first == "torchrun") return torchrun;
  if (first.starts_with("python") && command.size() > 2 && command[1] == "-m" &&
      command[2] == "torch.distributed.run") {
    return {3, torchrun.option, torchrun.same};
  }
  if (first == "mpirun" || first == "mpiexec" || first == "mpiexec.hydra") {
    return {1, "-n", {"-n", "-np", "-c", "--n", "--np"}};
  }
  return {};
}

/// Options of the launcher stand before the program, so a word that is none ends the search.
void refuse_number(const std::vector<std::string>& command, size_t from,
                   const std::vector<std::string_view>& names) {
  for (size_t i = from; i < command.size() && command[i].starts_with('-'); ++i) {
    const std::string_view word = std::string_view(command[i]).substr(0, command[i].find('='));
    if (std::find(names.begin(), names.end(), word) == names.end()) continue;
    throw Error(ErrorKind::usage,
                fmt::format("'{}' of {} would be the same at each width: write {} for its number",
                            word, base_name(command[0]), kHole));
  }
}

std::vector<std::string> with(const std::vector<std::string>& command, size_t at,
                              std::vector<std::string> words) {
  words.insert(words.begin(), command.begin(), command.begin() + static_cast<long>(at));
  words.insert(words.end(), command.begin() + static_cast<long>(at), command.end());
  return words;
}

/// 0 for the first thread of a core, 1 for the second: "0,64" is what both of them say.
size_t place_in_core(int cpu) {
  std::ifstream file(
      fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
  std::string list;
  std::getline(file, list);
  size_t place = 0;
  for (size_t at = 0; at < list.size();) {
    const int first = std::atoi(list.c_str() + at);
    const size_t end = std::min(list.find(',', at), list.size());
    const size_t dash = list.find('-', at);
    const int last = dash < end ? std::atoi(list.c_str() + dash + 1) : first;
    if (cpu >= first && cpu <= last) return place + static_cast<size_t>(cpu - first);
    place += static_cast<size_t>(last - first + 1);
    at = end + 1;
  }
  return 0;
}

uint64_t threads_of_a_process() {
  const char* given = std::getenv(kThreadVariables[0]);
  const long threads = given == nullptr ? 1 : std::atol(given);
  return threads > 0 ? static_cast<uint64_t>(threads) : 1;
}

}  // namespace

std::string_view name_of(ScaleAxis axis) {
  constexpr std::string_view kNames[] = {"threads", "procs", "gpus", "nodes"};
  return kNames[static_cast<size_t>(axis)];
}

std::string_view unit_of(ScaleAxis axis) {
  constexpr std::string_view kUnits[] = {"thread", "process", "GPU", "node"};
  return kUnits[static_cast<size_t>(axis)];
}

std::vector<std::string> command_at(const std::vector<std::string>& command, ScaleAxis axis,
                                    uint64_t n) {
  const std::string number = std::to_string(n);
  if (has_hole(command)) {
    std::vector<std::string> words = command;
    for (std::string& word : words) {
      for (size_t at = 0; (at = word.find(kHole, at)) != std::string::npos; at += number.size()) {
        word.replace(at, kHole.size(), number);
      }
    }
    return words;
  }
  if (axis == ScaleAxis::nodes) {
    if (base_name(command[0]) != "srun") return with(command, 0, {"srun", "-N", number});
    refuse_number(command, 1, {"-N", "--nodes"});
    return with(command, 1, {"-N", number});
  }
  const Launcher launcher = launcher_of(command);
  if (launcher.words == 0 || axis == ScaleAxis::threads) return command;
  refuse_number(command, launcher.words, launcher.same);
  return with(command, launcher.words, {std::string(launcher.option), number});
}

std::map<std::string, std::string> environment_at(const std::vector<std::string>& command,
                                                  ScaleAxis axis, uint64_t n,
                                                  const std::vector<std::string>& gpus) {
  std::map<std::string, std::string> changes;
  if (axis == ScaleAxis::threads) {
    for (const char* name : kThreadVariables) changes[name] = std::to_string(n);
  }
  // torchrun gives one thread to each of several processes, but all of them to a single one; then
  // one and two could not be compared.
  const bool one_thread =
      axis == ScaleAxis::procs ||
      (axis == ScaleAxis::gpus && launcher_of(command).option == "--nproc-per-node");
  if (one_thread && std::getenv(kThreadVariables[0]) == nullptr) {
    for (const char* name : kThreadVariables) {
      if (std::getenv(name) == nullptr) changes[name] = "1";
    }
  }
  if (axis == ScaleAxis::gpus) {
    std::string& visible = changes["CUDA_VISIBLE_DEVICES"];
    for (uint64_t i = 0; i < n; ++i) {
      if (!gpus.empty() && i >= gpus.size()) break;
      visible += (i == 0 ? "" : ",") + (gpus.empty() ? std::to_string(i) : gpus[i]);
    }
  }
  return changes;
}

std::vector<int> cores_at(ScaleAxis axis, uint64_t n) {
  if (axis == ScaleAxis::procs) n *= threads_of_a_process();
  const bool counts_cores = axis == ScaleAxis::threads || axis == ScaleAxis::procs;
  cpu_set_t allowed;
  if (!counts_cores || n > usable_cores() ||
      ::sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    return {};
  }
  std::set<std::pair<size_t, int>> order;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) order.emplace(place_in_core(cpu), cpu);
  }
  std::vector<int> cores;
  for (const auto& [place, cpu] : order) {
    if (cores.size() < n) cores.push_back(cpu);
  }
  return cores;
}

std::vector<std::string> usable_gpus() {
  std::vector<std::string> gpus;
  const char* given = std::getenv("CUDA_VISIBLE_DEVICES");
  if (given == nullptr) {
    for (const GpuUse& gpu : GpuWatch().look("")) gpus.push_back(std::to_string(gpu.number));
    return gpus;
  }
  const std::string_view list = given;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    if (list.substr(at, end - at) == "-1") break;  // CUDA ignores what stands behind
    gpus.emplace_back(list.substr(at, end - at));
    at = end + 1;
  }
  return gpus;
}

}  // namespace stoker
