// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"

namespace stoker {

/// One measured figure, and where it comes from.
struct Rate {
  std::string what;          // "read", "random_read", "open", "decode", …
  std::string unit;          // what per_s counts: "bytes", "operations" or "photos"
  uint64_t block_bytes = 0;  // of one operation; 0 where that means nothing
  unsigned threads = 1;
  bool cold = false;           // comes from the storage, not from memory
  std::string how;             // why it is cold, or where it comes from otherwise
  double per_s = 0;            // median of the repeats
  double least = 0, most = 0;  // among the repeats
  uint64_t amount = 0;         // of `unit`, over all repeats
  double seconds = 0;          // over all repeats
  unsigned repeats = 0;
};

struct Quota {
  uint64_t used_bytes = 0, limit_bytes = 0;  // a limit of 0: none
  uint64_t used_files = 0, limit_files = 0;
};

/// How Lustre spreads a new file.
struct Stripe {
  int64_t count = 0;  // -1: over all
  uint64_t bytes = 0;
};

/// A directory on some storage.
struct Place {
  std::string path;      // as it was named
  std::string known_as;  // "$SCRATCH"; empty for one that has no well-known name
  std::string purpose;   // what such a place is for, and what happens to files there: assumed from
  std::string deleted;   // its name, or its type where it has none
  std::string type;      // of the file system
  std::string mount, source;
  std::optional<uint64_t> total_bytes, free_bytes, total_inodes, free_inodes;
  std::optional<Quota> quota;
  std::optional<Stripe> stripe;
  bool writable = false;
  bool direct = false;      // takes O_DIRECT
  std::string same_as;      // another place on the same file system, which was measured
  std::string problem;      // why something could not be measured; empty: nothing
  uint64_t file_bytes = 0;  // of the file that was read
  uint64_t written_bytes = 0;
  double seconds = 0;
  std::vector<Rate> rates;

  /// The highest rate, among the cold ones where there are any, over all numbers of threads; for
  /// blocks of `block_bytes`, or of any size (0). Null where nothing was measured.
  const Rate* best(std::string_view what, uint64_t block_bytes = 0) const;
};

struct CopyRate {
  std::string from, to;
  Rate rate;
};

struct NumaNode {
  unsigned number = 0;
  std::string cpus;  // "0-15,32-47"
  uint64_t memory_bytes = 0;
};

struct Gpu {
  std::string name;
  uint64_t memory_bytes = 0;
  std::vector<Rate> rates;  // "pinned" and "pageable", host to device
};

/// What `probe` found out about a machine.
struct Machine {
  std::string host, kernel, version;
  std::string measured_at;  // 2026-01-31T12:00:00Z
  std::string cpu;
  unsigned cores = 1;  // that may be used
  unsigned machine_cores = 1, affinity_cores = 1;
  double cgroup_cores = 0;   // 0: no limit
  unsigned slurm_cores = 0;  // 0: not said
  uint64_t memory_bytes = 0, memory_available_bytes = 0;
  std::optional<uint64_t> memory_limit_bytes;  // of the cgroup
  std::vector<NumaNode> numa;
  std::vector<Rate> memory;  // "copy", and "shm_read" and "shm_write" for /dev/shm
  std::vector<Rate> decode;
  std::string photos;  // which ones were decoded
  std::vector<Gpu> gpus;
  std::vector<Place> places;
  std::vector<CopyRate> copies;
  std::vector<std::string> notes;  // what could not be found out, and why
  uint64_t written_bytes = 0;
  double seconds = 0;

  /// Photos that one core decodes in a second; nothing where that was not measured.
  std::optional<double> decode_per_core() const;
};

/// The members as docs/commands/probe.md describes them.
Json to_json(const Machine& machine);
/// What `stoker probe --json` prints; `profiles` are the files that keep it.
Json probe_document(const Machine& machine, const std::vector<std::string>& profiles);
/// Throws Error(corrupt) where `json` is no such document. What a later version added is ignored.
Machine machine_from_json(const Json& json);

}  // namespace stoker
