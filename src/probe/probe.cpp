// SPDX-License-Identifier: Apache-2.0
#include "probe/probe.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "os/node.h"
#include "os/output_file.h"
#include "probe/measurements.h"
#include "probe/stopwatch.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

constexpr double kTrials = 26;  // in a place, about
constexpr double kMemorySeconds = 3, kDecodeSeconds = 3, kGpuSeconds = 2, kCopySeconds = 0.4;

/// A place while it is measured; what was written there stays until copies are done.
struct Workspace {
  Place place;
  std::unique_ptr<ProbeDirectory> directory;
  std::unique_ptr<ProbeFile> file;
  Allowance allowance;
  double write_bytes_per_s = 0;
};

std::string now_as_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  return std::string(text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts));
}

void find_names(Machine& machine) {
  utsname names{};
  if (::uname(&names) == 0) {
    machine.host = names.nodename;
    machine.kernel = fmt::format("{} {}", names.sysname, names.release);
  }
  machine.version = STOKER_VERSION;
  machine.measured_at = now_as_text();
}

/// Those asked for, or the well-known ones and the current directory.
std::vector<Place> places_of(const ProbeOptions& options) {
  std::vector<Place> places;
  if (options.places.empty()) places = known_places();
  for (const std::string& path :
       options.places.empty() ? std::vector<std::string>{"."} : options.places) {
    Place place;
    place.path = path;
    places.push_back(std::move(place));
  }
  for (Place& place : places) {
    std::error_code failed;
    const fs::path whole = fs::absolute(place.path, failed).lexically_normal();
    if (!failed) place.path = whole.has_filename() ? whole.string() : whole.parent_path().string();
  }
  return places;
}

/// Marks places that another one stands for: the same directory, or, where the user named none,
/// the same file system.
void find_duplicates(std::vector<Workspace>& spaces, bool by_file_system) {
  const auto identity = [](const std::string& path, struct stat& info) {
    return ::stat(path.c_str(), &info) == 0;
  };
  for (size_t i = 0; i < spaces.size(); ++i) {
    struct stat mine {};
    if (!identity(spaces[i].place.path, mine)) continue;
    for (size_t j = 0; j < i && spaces[i].place.same_as.empty(); ++j) {
      struct stat other {};
      if (!spaces[j].place.same_as.empty() || !identity(spaces[j].place.path, other)) continue;
      const bool same_directory = mine.st_dev == other.st_dev && mine.st_ino == other.st_ino;
      const bool better = !spaces[j].place.writable && spaces[i].place.writable;
      if (same_directory || (by_file_system && mine.st_dev == other.st_dev && !better)) {
        spaces[i].place.same_as = spaces[j].place.path;
      }
    }
  }
}

/// How much may be written: a part of what is free, and of the memory where the place lies there.
uint64_t bytes_for(const Place& place, const ProbeOptions& options, const Machine& machine) {
  uint64_t bytes = std::min(options.bytes, place.free_bytes.value_or(0) / 4);
  if (place.quota && place.quota->limit_bytes > 0) {
    const uint64_t used = std::min(place.quota->used_bytes, place.quota->limit_bytes);
    bytes = std::min(bytes, (place.quota->limit_bytes - used) / 4);
  }
  if (is_in_memory(place.type)) bytes = std::min(bytes, machine.memory_available_bytes / 8);
  return bytes;
}

/// Why nothing can be written, or nothing.
std::string write_problem(const Workspace& space) {
  const Place& place = space.place;
  if (!place.writable) return "cannot be written";
  if (space.allowance.bytes < kLeastProbeBytes) {
    return fmt::format("too little room to write: {} free",
                       format_bytes(place.free_bytes.value_or(0)));
  }
  return "";
}

void measure_existing(Workspace& space, const ProbeOptions& options, Progress& progress) {
  const std::vector<FoundFile> found = existing_files(space.place.path, progress);
  progress.check_stop();
  if (found.empty()) {
    space.place.problem += "; holds no file that could be read: nothing measured";
    return;
  }
  space.place.problem += "; reads measured on files that are there";
  if (options.storage) {
    const auto largest =
        std::max_element(found.begin(), found.end(),
                         [](const FoundFile& a, const FoundFile& b) { return a.size < b.size; });
    space.file = std::make_unique<ProbeFile>(ProbeFile::open(largest->path));
    measure_reads(space.place, *space.file, space.allowance, progress);
  }
  std::vector<std::string> files;
  for (const FoundFile& file : found) files.push_back(file.path);
  if (options.files) measure_small_files(space.place, files, space.allowance, progress);
}

void measure_written(Workspace& space, const ProbeOptions& options, Progress& progress) {
  Place& place = space.place;
  Allowance& allowance = space.allowance;
  // Of what may be written, a sixteenth is for small files and as much for copies to this place.
  const uint64_t reserved = allowance.bytes / 16;
  if (options.storage || options.copies) {
    Allowance large = allowance;
    large.bytes = allowance.bytes - 2 * reserved;
    space.file = std::make_unique<ProbeFile>(
        measure_writes(place, space.directory->path(), large, progress));
    if (const Rate* write = place.best("write")) {
      space.write_bytes_per_s = write->per_s;
    } else if (options.storage && !allowance.over()) {
      place.problem = fmt::format(
          "{} are too little to write with that many threads: give more "
          "by --bytes, or fewer --threads",
          format_bytes(allowance.bytes));
    }
    if (options.storage) {
      measure_reads(place, *space.file, allowance, progress);
    } else {
      place.rates.clear();
    }
  }
  if (options.files) {
    Allowance small = allowance;
    small.bytes = reserved;
    if (place.free_inodes) {
      small.bytes = std::min(small.bytes, *place.free_inodes / 4 * kSmallFileBytes);
    }
    measure_small_files(place, measure_creates(place, space.directory->path(), small, progress),
                        allowance, progress);
  }
  allowance.bytes = reserved;
}

void measure_place(Workspace& space, const ProbeOptions& options, Progress& progress) {
  const auto begin = ProbeClock::now();
  try {
    ProbeDirectory::remove_leftovers(space.place.path);
    space.place.problem = write_problem(space);
    if (space.place.problem.empty()) {
      try {
        space.directory = std::make_unique<ProbeDirectory>(space.place.path);
      } catch (const Error& error) {  // access() knows nothing of quotas or root squashing
        space.place.problem = error.what();
        space.place.writable = false;
      }
    }
    if (space.directory) {
      measure_written(space, options, progress);
    } else {
      measure_existing(space, options, progress);
    }
    if (space.allowance.over()) {
      space.place.problem += fmt::format("{}time was over before all was measured",
                                         space.place.problem.empty() ? "" : "; ");
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    space.place.problem = error.what();
  }
  space.place.seconds = seconds_since(begin);
}

void measure_copies(Machine& machine, std::vector<Workspace>& spaces, Progress& progress) {
  std::vector<Workspace*> from, to;
  for (Workspace& space : spaces) {
    if (space.file) from.push_back(&space);
    if (space.directory) to.push_back(&space);
  }
  constexpr uint64_t kLeast = 2 << 20;
  const auto pairs = static_cast<double>(std::max<size_t>(1, from.size() * to.size()));
  for (Workspace* target : to) {
    const bool also_source = target->file != nullptr;
    const uint64_t bytes =
        target->allowance.bytes / std::max<size_t>(1, from.size() - (also_source ? 1 : 0));
    for (const Workspace* source : from) {
      if (source == target || target->allowance.over()) continue;
      const auto begin = ProbeClock::now();
      Allowance allowance = target->allowance;
      allowance.seconds = std::min(kCopySeconds, 6 / pairs);
      // What is only in memory when the time is over would have to be waited for.
      const auto in_time = static_cast<uint64_t>(target->write_bytes_per_s * allowance.seconds);
      allowance.bytes = std::min(bytes, std::max(in_time, kLeast));
      try {
        Rate rate = measure_copy(*source->file, target->directory->path(), allowance, progress);
        target->place.written_bytes += rate.amount;
        if (rate.repeats > 0) {
          machine.copies.push_back({source->place.path, target->place.path, std::move(rate)});
        }
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::interrupted) throw;
        target->place.problem = error.what();
      }
      target->place.seconds += seconds_since(begin);
    }
  }
}

std::vector<Workspace> open_places(const ProbeOptions& options, const Machine& machine) {
  std::vector<Workspace> spaces;
  for (Place& place : places_of(options)) {
    Workspace space;
    space.place = std::move(place);
    try {
      find_facts(space.place);
    } catch (const Error& error) {
      space.place.problem = error.what();
    }
    if (space.place.purpose.empty()) describe_place(space.place);
    space.allowance.bytes = bytes_for(space.place, options, machine);
    spaces.push_back(std::move(space));
  }
  find_duplicates(spaces, options.places.empty());
  return spaces;
}

void measure_places(Machine& machine, const ProbeOptions& options, Progress& progress) {
  std::vector<Workspace> spaces = open_places(options, machine);
  const auto measured = [](const Workspace& space) {
    return space.place.problem.empty() && space.place.same_as.empty();
  };
  const auto count = static_cast<uint64_t>(std::count_if(spaces.begin(), spaces.end(), measured));
  const double of_all = std::max(options.seconds * 4, kSecondsOfAllPlaces);
  const double seconds =
      std::min(options.seconds, of_all / static_cast<double>(std::max<uint64_t>(1, count)));
  const auto deadline =
      ProbeClock::now() + std::chrono::duration_cast<ProbeClock::duration>(
                              std::chrono::duration<double>(of_all + kGraceSeconds));
  progress.begin("measuring places", count, 0);
  for (Workspace& space : spaces) {
    progress.check_stop();
    if (!measured(space)) continue;
    space.allowance.seconds = seconds / kTrials;
    space.allowance.threads = options.threads;
    space.allowance.deadline = deadline;
    if (options.storage || options.files || options.copies) {
      measure_place(space, options, progress);
    }
    ++progress.samples;
  }
  if (options.copies) {
    progress.begin("copying between places", 0, 0);
    measure_copies(machine, spaces, progress);
  }
  for (Workspace& space : spaces) {
    machine.written_bytes += space.place.written_bytes;
    machine.places.push_back(std::move(space.place));
  }
}

}  // namespace

Machine probe(const ProbeOptions& options, Progress& progress) {
  const auto begin = ProbeClock::now();
  Machine machine;
  find_names(machine);
  find_topology(machine, "");
  const double share = std::min(1.0, options.seconds / ProbeOptions().seconds);
  if (options.decode) {
    progress.begin("decoding photos", 0, 0);
    measure_decode(machine, options.photos, kDecodeSeconds * share, progress);
  }
  if (options.memory) {
    progress.begin("copying memory", 0, 0);
    constexpr uint64_t kMostInMemory = 256 << 20;
    measure_memory(machine, std::min(options.bytes, kMostInMemory), kMemorySeconds * share,
                   progress);
  }
  if (options.gpu) {
    progress.begin("copying to the GPU", 0, 0);
    measure_gpus(machine, kGpuSeconds * share, progress);
  }
  measure_places(machine, options, progress);
  machine.seconds = seconds_since(begin);
  return machine;
}

std::string profile_directory() { return cache_directory() + "/stoker/machines"; }

std::vector<std::string> write_profiles(const Machine& machine, const std::string& directory) {
  constexpr size_t kLongestName = 200;
  make_directories(directory);
  std::vector<std::string> paths;
  for (const Place& place : machine.places) {
    if (place.rates.empty()) continue;
    Machine one = machine;
    one.places = {place};
    std::erase_if(one.copies, [&](const CopyRate& copy) {
      return copy.from != place.path && copy.to != place.path;
    });
    std::string name =
        fmt::format("{}--{}", percent_escape(machine.host, "/"), percent_escape(place.path, "/"));
    if (name.size() > kLongestName) {
      name = fmt::format("{}-{:016x}", name.substr(0, kLongestName), hash64(name));
    }
    paths.push_back(fmt::format("{}/{}.json", directory, name));
    const std::string text =
        to_json(one).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    write_file(paths.back(), std::as_bytes(std::span(text)));
  }
  return paths;
}

}  // namespace stoker
