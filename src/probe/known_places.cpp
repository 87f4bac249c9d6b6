// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "probe/measurements.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

struct KnownPlace {
  std::string_view name;  // a path, or "$VARIABLE"; a '*' at the end stands for anything
  std::string_view purpose;
  std::string_view deleted;
};

constexpr std::string_view kJobEnds = "when the job ends";
constexpr std::string_view kUnused = "often after weeks without use: see the site's rules";

/// The most telling name first: it is the one that is shown.
constexpr std::array kKnownPlaces = {
    KnownPlace{"$SLURM_TMPDIR", "this node's own disk, for the time of a job", kJobEnds},
    KnownPlace{"$SCRATCH", "large shared storage for running jobs", kUnused},
    KnownPlace{"$SCRATCH_*", "large shared storage for running jobs", kUnused},
    KnownPlace{"$PROJECT", "shared storage of a project, for what is kept", "no; quotas apply"},
    KnownPlace{"$DATA", "shared storage for datasets", "no; quotas apply"},
    KnownPlace{"$TMPDIR", "temporary files, mostly on this node", "when the job ends, mostly"},
    KnownPlace{"/scr", "this node's own disk",
               "after the job, or without use: see the site's rules"},
    KnownPlace{"/local", "this node's own disk",
               "after the job, or without use: see the site's rules"},
    KnownPlace{"/dev/shm", "memory of this node; counts as the job's memory",
               "with the node's restart, on most clusters when the job ends"},
};

/// Variables whose name begins with `prefix`, in order.
std::vector<std::string> variables_like(std::string_view prefix) {
  std::vector<std::string> names;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view entry(*at);
    const std::string_view name = entry.substr(0, entry.find('='));
    if (name.size() > prefix.size() && name.starts_with(prefix)) names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void add(std::vector<Place>& places, const KnownPlace& known, const std::string& name) {
  std::string path = name;
  if (name.starts_with('$')) {
    const char* value = std::getenv(name.c_str() + 1);
    path = value == nullptr ? "" : value;
  }
  std::error_code failed;
  if (!path.starts_with('/') || !fs::is_directory(path, failed)) return;
  Place place;
  place.path = path;
  place.known_as = name;
  place.purpose = known.purpose;
  place.deleted = known.deleted;
  places.push_back(std::move(place));
}

}  // namespace

std::vector<Place> known_places() {
  std::vector<Place> places;
  for (const KnownPlace& known : kKnownPlaces) {
    if (!known.name.ends_with('*')) {
      add(places, known, std::string(known.name));
      continue;
    }
    for (const std::string& name : variables_like(known.name.substr(1, known.name.size() - 2))) {
      add(places, known, "$" + name);
    }
  }
  return places;
}

void describe_place(Place& place) {
  std::error_code failed;
  const fs::path real = fs::canonical(place.path, failed);
  for (const Place& known : known_places()) {
    const fs::path root = fs::canonical(known.path, failed);
    const auto [end, rest] = std::mismatch(root.begin(), root.end(), real.begin(), real.end());
    if (end != root.end()) continue;
    place.known_as = rest == real.end() ? known.known_as : "";
    place.purpose = known.purpose;
    place.deleted = known.deleted;
    return;
  }
  const bool memory = is_in_memory(place.type);
  place.purpose = memory ? "memory of this node" : "not known by its name";
  place.deleted = memory ? "with the node's restart" : "not known";
}

}  // namespace stoker
