// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "dataset/index.h"
#include "dataset/scan.h"
#include "format/format.h"
#include "index/row_indexes.h"
#include "os/readers.h"

namespace stoker {

enum class IndexWhere : uint8_t { automatic, beside, cache };

struct IndexOptions {
  Depth depth = Depth::structure;
  IndexWhere where = IndexWhere::automatic;  // beside the data, or in the cache where it must
  unsigned jobs = 0;                         // 0: one per usable core
  /// Where the format states checksums itself, compare them also at structure depth: what is then
  /// read can be trusted, at the price of reading it.
  bool verify_stated = false;
  /// Takes views of what can only be read front to back: for a source that is read once.
  bool views = false;
  std::string list;  // see Source::list
  /// At full depth: JPEG photos get a row index, see RowIndexer; nothing: those that are there
  /// stay.
  std::optional<uint32_t> row_index;
  bool unless_present = false;  // do nothing where an index has appeared meanwhile
  /// Directory of an earlier index of the same data: class names are taken over from there.
  std::string earlier;
  Progress* progress = nullptr;
  FileSystem* file_system = nullptr;
};

struct IndexResult {
  std::string directory;  // where the index lies
  std::string format;
  Depth depth = Depth::structure;
  uint64_t samples = 0, shards = 0, bytes = 0;
  uint64_t segments_reused = 0;
  uint64_t hidden = 0, unlisted = 0;  // files that were left alone; see Layout
  std::vector<std::string> unused;    // see Layout
  std::vector<Fault> faults;
  RowIndexSummary row_index;
  bool in_cache = false;
};

/// Gives the dataset at `path` an index. Finished segments of an interrupted or earlier run are
/// used again where the shards they describe have not changed.
/// Throws Error(unsupported) for a compressed shard, with the advice to pack.
IndexResult build_index(const std::string& path, const IndexOptions& options);
/// The same for a dataset whose paths are known.
IndexResult build_index_at(const DatasetPaths& paths, const IndexOptions& options);

/// The same into a directory of the caller's, for a source that may be compressed: what `pack`
/// plans from, and `check` looks at where there is no index.
IndexResult build_index_in(const Source& source, const Detected& detected,
                           const std::string& directory, const IndexOptions& options);

/// Who may read all segments of an index, and so its manifest.
Readers readers_of(const std::string& directory, const Manifest& manifest);

/// Source for a path as the user gave it.
Source source_at(const DatasetPaths& paths, const std::string& list, FileSystem* file_system);

/// Opens a dataset, building an index of structure depth where there is none.
struct OpenedDataset {
  std::shared_ptr<const Index> index;
  DatasetPaths paths;
  bool built = false;  // an index was made on the way
  IndexResult result;  // of making it
};
OpenedDataset open_dataset(const std::string& path, const IndexOptions& options);

}  // namespace stoker
