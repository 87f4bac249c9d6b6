// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/parallel.h"
#include "base/progress.h"
#include "dataset/manifest.h"
#include "dataset/row_index_file.h"
#include "dataset/schema.h"
#include "image/decode_path.h"

namespace stoker {

// The row indexes of JPEG photos (image/row_index.h) are made segment by segment, once a segment
// has checksums: its photos are then mostly still in memory.

/// "rows": 0, as fine as half a percent of each photo holds, or as it is there; a number N: an
/// entry every N MCUs; "none": nothing. Throws Error(usage).
std::optional<uint32_t> parse_row_index(std::string_view text);

/// How the photos of a dataset can be decoded, as far as it was looked at them.
struct RowIndexSummary {
  std::array<uint64_t, kDecodePaths> photos{};  // by DecodePath
  uint64_t bytes = 0;                           // of row indexes
  uint64_t photo_bytes = 0;

  uint64_t all() const;
  uint64_t indexed() const { return photos[static_cast<size_t>(DecodePath::indexed)]; }
  /// Of the photos' bytes.
  double percent() const;
  void add(const RowIndexSummary& other);
};

/// What the files beside these segments in `directory` say; what is missing or damaged counts as
/// nothing.
RowIndexSummary row_index_summary(const std::string& directory,
                                  std::span<const SegmentEntry> segments);

/// The field of encoded photos; nothing where there is none.
std::optional<uint32_t> photo_field(const std::vector<Field>& fields);

struct RowIndexWork {
  std::string directory;           // of the index
  std::vector<std::string> roots;  // where the shards lie
  uint32_t every = 0;
  const ThreadShares* threads = nullptr;
  Progress* progress = nullptr;
  FileSystem* file_system = nullptr;  // the real one
};

/// What was done to a segment before, and is only counted now, step by step: making row indexes
/// takes most of the time.
struct NotYetCounted {
  uint64_t samples = 0, bytes = 0;
};

/// Makes the row indexes of a segment of full depth, unless they are there, and right.
/// A photo that cannot be read, or has changed since its checksum was taken, gets none.
void make_row_indexes(const RowIndexWork& work, const SegmentEntry& entry,
                      const NotYetCounted& before);

}  // namespace stoker
