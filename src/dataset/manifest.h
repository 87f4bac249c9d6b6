// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataset/scan.h"
#include "dataset/schema.h"
#include "os/output_file.h"

namespace stoker {

/// What a manifest says about one segment.
struct SegmentEntry {
  std::string file;  // name next to the manifest
  uint64_t samples = 0;
  uint64_t shards = 0;  // shards that begin in it
  uint64_t bytes = 0;   // of the fields that are stored
  uint32_t header_crc = 0;
  /// How many faults it names; nothing in manifests of earlier versions.
  std::optional<uint64_t> faults = std::nullopt;
};

/// The list of segments that make up an index, and what they have in common. Replaced by rename,
/// so a reader sees the old one or the new one. Its first line carries a checksum of the rest.
struct Manifest {
  static constexpr int kVersion = 0;  // unstable: may change without notice until it is 1

  std::string format;
  Depth depth = Depth::structure;
  Schema schema;
  std::vector<SegmentEntry> segments;
  /// Data that a scan met and could not take in, by number.
  uint64_t faults = 0;
  /// Those of them that no segment has: shards and files that are missing, the first thousand.
  std::vector<Fault> missing;
  /// A list said which files are samples (`--list`): others that lie there are none.
  bool listed = false;
  /// What the shards hold besides the samples, in words; see Layout.
  std::vector<std::string> unused;
  /// How `pack` made the dataset, as JSON: its options, and what it left out. Empty otherwise.
  std::string origin;

  uint64_t samples() const;
  uint64_t shards() const;
  uint64_t bytes() const;

  void write(const std::string& path, const Access& access) const;
  /// Throws Error(not_found), or Error(corrupt) that says to run `stoker index`.
  static Manifest read(const std::string& path);
};

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kIndexDirectory = ".stoker";

}  // namespace stoker
