// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataset/manifest.h"
#include "dataset/row_index_file.h"
#include "dataset/segment.h"

namespace stoker {

/// Where a dataset lies, and where its index is looked for.
struct DatasetPaths {
  std::string path;    // as given: a directory, or a single file
  std::string root;    // what shard paths are relative to
  std::string file;    // name of the single file, or empty
  std::string inner;   // "train" of x.h5::train: what of the file is meant
  std::string split;   // "train" of x::train, whose files are in root with those of others; "all"
  std::string beside;  // index directory beside the data
  std::string cache;   // index directory in the user's cache

  /// Throws Error(not_found) where there is nothing at `path`, which may end in ::SPLIT or ::INNER.
  /// A split that is a sub-directory becomes the root.
  static DatasetPaths of(const std::string& path);
  /// Throws SeveralSplits where `manifest` is that of several splits which nobody asked for as one.
  void refuse_merged(const Manifest& manifest) const;
  /// What of root or file is meant: "", "train", "train::images".
  std::string part() const;
  /// Where the index is below the root of a copy that holds this dataset alone.
  std::string index_in_copy() const;
  /// Throws Error(corrupt) where `pack` has begun to write the dataset and was not finished.
  void refuse_unfinished() const;
  /// From here on the index is that of the samples which this list names, in the cache alone.
  void use_list(const std::string& list);
  /// The one of the two that holds a manifest which we may read and trust; beside comes first.
  std::optional<std::string> existing_index() const;
};

/// Where `pack` keeps its plan until it is done, below a dataset's index directory.
inline constexpr const char* kPackPlan = "pack/plan.json";

/// An index open for reading: look-ups by number and by key. Opening reads the manifest alone.
/// Safe from many threads, also after a fork.
class Index {
 public:
  /// `directory` holds manifest.json.
  explicit Index(const std::string& directory);
  /// Of segments in `directory` that no manifest there need speak of.
  Index(std::string directory, Manifest manifest);
  ~Index();
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  const Manifest& manifest() const { return manifest_; }
  const Schema& schema() const { return manifest_.schema; }
  const std::string& directory() const { return directory_; }
  uint64_t size() const { return first_.back(); }

  struct Place {
    uint32_t segment = 0;
    uint64_t sample = 0;  // within it
  };
  Place place(uint64_t sample) const;
  uint64_t first_sample(uint32_t segment) const { return first_[segment]; }
  const Segment& segment(uint32_t number) const;
  /// The row indexes of its photos; null where it has none, or damaged ones.
  const RowIndexFile* row_indexes(uint32_t segment) const;

  std::string key(uint64_t sample) const;
  std::optional<uint64_t> find(std::string_view key) const;
  /// Field number in segment of field `field` of the schema; nothing where it has none.
  std::optional<uint32_t> local_field(uint32_t segment, uint32_t field) const;

 private:
  struct Opened {
    explicit Opened(const std::string& path) : segment(path) {}
    Segment segment;
    std::vector<std::optional<uint32_t>> local_fields;
    std::string path;
  };
  struct RowIndexes {
    std::unique_ptr<const RowIndexFile> file;
  };
  const Opened& opened(uint32_t number) const;
  SegmentEntry entry_in_force(uint32_t number) const;

  std::string directory_;
  Manifest manifest_;
  std::vector<uint64_t> first_;
  mutable std::vector<std::atomic<const Opened*>> segments_;
  mutable std::vector<std::atomic<const RowIndexes*>> row_indexes_;  // as segments_
};

}  // namespace stoker
