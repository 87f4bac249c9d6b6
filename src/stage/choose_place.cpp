// SPDX-License-Identifier: Apache-2.0
#include "stage/choose_place.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "os/node.h"
#include "os/process_tree.h"
#include "os/site.h"
#include "probe/measurements.h"
#include "stage/staged_copy.h"

namespace stoker {
namespace {

/// Of one node alone: what other file systems are is not known, or they are shared.
constexpr std::array<std::string_view, 9> kLocalTypes = {"ext4", "ext3", "ext2",  "xfs",    "btrfs",
                                                         "zfs",  "f2fs", "tmpfs", "overlay"};
constexpr std::array<std::string_view, 5> kPlaces = {"$SLURM_TMPDIR", "/scr", "/local/scratch",
                                                     "$TMPDIR", "/dev/shm"};

uint64_t device_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? uint64_t{status.st_dev} : 0;
}

/// What may still be put into memory: a copy there counts as the job's.
uint64_t memory_left() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  uint64_t available = ~uint64_t{0};
  constexpr uint64_t kKibi = 1024;
  while (file >> word) {
    if (word == "MemAvailable:" && file >> available) available *= kKibi;
  }
  const uint64_t limit = cgroup_memory().limit;
  return limit == 0 ? available : std::min(available, limit);
}

std::string described(const StagePlace& place) {
  const std::string name = place.known_as.empty() || place.known_as == place.path
                               ? printable(place.path)
                               : fmt::format("{} ({})", printable(place.path), place.known_as);
  return place.problem.empty() ? fmt::format("{}: {} free{}", name, format_bytes(place.room),
                                             place.in_memory ? ", in memory" : "")
                               : fmt::format("{}: {}", name, place.problem);
}

}  // namespace

StagePlace look_at_place(const std::string& path) {
  Place facts;
  facts.path = path;
  find_facts(facts);
  StagePlace place;
  place.path = path;
  place.type = facts.type;
  place.in_memory = is_in_memory(facts.type);
  place.room = facts.free_bytes.value_or(0);
  if (facts.quota && facts.quota->limit_bytes > 0) {
    const Quota& quota = *facts.quota;
    place.room =
        std::min(place.room, quota.limit_bytes - std::min(quota.limit_bytes, quota.used_bytes));
  }
  if (place.in_memory) place.room = std::min(place.room, memory_left());
  if (!facts.writable) place.problem = "cannot be written";
  return place;
}

std::vector<StagePlace> well_known_places() {
  const Site site = read_site();
  std::vector<StagePlace> places;
  const auto add = [&](const std::string& path, std::string_view known_as, bool site_says_local) {
    const bool known = std::any_of(places.begin(), places.end(),
                                   [&](const StagePlace& place) { return place.path == path; });
    if (path.empty() || known) return;
    StagePlace place;
    try {
      place = look_at_place(path);
      const bool local = site_says_local || std::find(kLocalTypes.begin(), kLocalTypes.end(),
                                                      place.type) != kLocalTypes.end();
      if (!local) place.problem = fmt::format("is not this node's own ({})", place.type);
      if (place.problem.empty()) own_directory(path, std::nullopt, false);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::not_found) return;
      place.path = path;
      place.problem = error.what();
    }
    place.known_as = known_as;
    places.push_back(std::move(place));
  };
  for (const SitePlace& place : site.places) {
    if (place.local) add(place.path, "", true);
  }
  for (const std::string_view name : kPlaces) {
    const bool variable = name.starts_with('$');
    add(variable ? environment(std::string(name.substr(1)).c_str()) : std::string(name), name,
        false);
  }
  return places;
}

ChosenPlace choose_place(const std::vector<StagePlace>& places, uint64_t bytes, uint64_t device,
                         bool partial) {
  const StagePlace* best = nullptr;
  std::string all;
  for (StagePlace place : places) {
    if (place.problem.empty() && device_of(place.path) == device) {
      place.problem = "the dataset lies on the same file system";
    }
    all += "\n  " + described(place);
    if (!place.problem.empty()) continue;
    if (best == nullptr || place.room > best->room) {
      best = &places[static_cast<size_t>(
          std::find_if(places.begin(), places.end(),
                       [&](const StagePlace& other) { return other.path == place.path; }) -
          places.begin())];
    }
  }
  if (best == nullptr) {
    throw Error(ErrorKind::io, fmt::format("no place on this node to stage to: name one{}{}",
                                           all.empty() ? "" : "; looked at:", all));
  }
  if (best->room < bytes && !partial) {
    throw Error(
        ErrorKind::io,
        fmt::format("no place on this node has room for {}: name another, add --partial, or "
                    "make room (stoker stage --clean); looked at:{}",
                    format_bytes(bytes), all),
        ENOSPC);
  }
  return {best->path, fmt::format("the most room of this node's own places; looked at:{}", all)};
}

}  // namespace stoker
