// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "probe/probe_directory.h"
#include "probe/stopwatch.h"
#include "results/machine.h"

// What `probe` consists of, one source file for each part.

namespace stoker {

/// What the measurements of one place may cost.
struct Allowance {
  uint64_t bytes = 0;    // that may still be written; goes down
  double seconds = 0.3;  // of one trial
  unsigned threads = 16;
  ProbeClock::time_point deadline = ProbeClock::time_point::max();  // no trial begins behind it

  bool over() const { return ProbeClock::now() >= deadline; }
};

/// Rates of reads of 4 KiB and 128 KiB: a page, and about a photo.
inline constexpr uint64_t kSmallBlock = 4096, kPhotoBlock = 131072;
/// What the small files hold.
inline constexpr uint64_t kSmallFileBytes = 16384;

// --- place_facts.cpp
// ------------------------------------------------------------------------------

/// Fills in what the system says about place.path: file system, space, quota, stripes.
/// Throws Error(not_found) where it does not exist and Error(usage) where it is no directory.
void find_facts(Place& place);
struct Mount {
  std::string point, type, source;
};
/// The mount that `path`, which has no links in it, lies in; `lines` as /proc/self/mountinfo.
std::optional<Mount> mount_of(const std::string& path, std::istream& lines);
/// From what `lfs getstripe -d` prints; of several components the widest.
std::optional<Stripe> parse_stripe(const std::string& text);
/// From what `lfs quota -q -u USER PATH` prints.
std::optional<Quota> parse_quota(const std::string& text);
/// Whether a file system of this type lies in memory.
bool is_in_memory(std::string_view type);

// --- known_places.cpp
// -----------------------------------------------------------------------------

/// The well-known places that exist here, by environment and name: path, known_as, purpose and
/// deleted are filled in.
std::vector<Place> known_places();
/// Fills in the same for a place that was named by the user.
void describe_place(Place& place);

// --- storage.cpp
// ----------------------------------------------------------------------------------

/// Writes a file in `directory` in several ways and adds the rates; returns the one that is to be
/// read.
ProbeFile measure_writes(Place& place, const std::string& directory, Allowance& allowance,
                         Progress& progress);
/// Sequential and random, cold and warm.
void measure_reads(Place& place, const ProbeFile& file, const Allowance& allowance,
                   Progress& progress);

// --- small_files.cpp
// ------------------------------------------------------------------------------

/// Creates files in `directory` and adds the rates of creating; returns their paths.
std::vector<std::string> measure_creates(Place& place, const std::string& directory,
                                         Allowance& allowance, Progress& progress);
/// Of files that are there: stat, open, read.
void measure_small_files(Place& place, const std::vector<std::string>& files,
                         const Allowance& allowance, Progress& progress);
struct FoundFile {
  std::string path;
  uint64_t size = 0;
};
/// What can be read in a directory and below: some thousand files, as they are found.
std::vector<FoundFile> existing_files(const std::string& directory, Progress& progress);

// --- copies.cpp
// -----------------------------------------------------------------------------------

/// Copies `from` to a new file in `directory` until time or allowance are used up.
Rate measure_copy(const ProbeFile& from, const std::string& directory, Allowance& allowance,
                  Progress& progress);

// --- memory.cpp, topology.cpp
// ---------------------------------------------------------------------

/// Writes `bytes` to /dev/shm at most.
void measure_memory(Machine& machine, uint64_t bytes, double seconds, Progress& progress);
/// Cores, memory, NUMA nodes. `root` is "" or where a test has its own /sys and /proc; what is
/// missing there is left out, and noted.
void find_topology(Machine& machine, const std::string& root);

// --- photos.cpp, decode_rate.cpp, gpu.cpp
// ---------------------------------------------------------

/// JPEGs of 500 x 375 pixels of smooth noise, about 97 kB each; the same every time.
std::vector<std::string> generated_photos(unsigned count);
/// `folder` empty: generated photos. Throws Error(not_found) where a folder holds none.
void measure_decode(Machine& machine, const std::string& folder, double seconds,
                    Progress& progress);
void measure_gpus(Machine& machine, double seconds, Progress& progress);

}  // namespace stoker
