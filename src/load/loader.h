// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "load/batch.h"
#include "load/columns.h"
#include "load/loader_stats.h"
#include "load/order.h"
#include "load/picture.h"
#include "load/sample_cache.h"
#include "load/sources.h"

namespace stoker {

/// What to do with a sample that cannot be read or decoded.
enum class OnError : uint8_t {
  raise,    // next() throws what is wrong with it; so does a Loader of a dataset that lacks samples
  skip,     // its batch has one row less
  replace,  // the sample at the next position of the epoch takes its place
};

struct CacheOptions {
  std::string directory;  // empty: in memory
  uint64_t limit = 0;     // bytes
};

/// A field whose values become one array, filled up.
struct PaddedField {
  std::string name;
  double value = 0;
};

struct LoaderOptions {
  uint64_t batch_size = 256;
  OrderOptions order;
  uint64_t seed = 0;  // of what is random about a sample
  Ranks ranks;
  Remainder remainder = Remainder::pad;
  bool drop_last = false;  // a last batch that is not full
  OnError on_error = OnError::raise;
  std::vector<RenamedField> renamed;     // all other options know the new names
  std::vector<std::string> fields;       // empty: all
  std::string image{kImageField};        // the field that `picture` decodes
  std::optional<PictureRecipe> picture;  // none: encoded bytes
  std::vector<PaddedField> padded;
  std::optional<CacheOptions> cache;
  unsigned threads = 0;  // that decode; 0: one per usable core, fewer where that is enough
  unsigned ahead = 0;    // batches that are made before they are asked for; 0: as many as help
  bool pinned = false;   // batches lie in memory that a GPU copies from by itself
  /// Of a block shuffle: what is read at once, and what is mixed at a time.
  uint64_t block_bytes = 4 << 20, window_bytes = 1 << 30;
};

/// Feeds training: samples of datasets as batches, in an order and with augmentation that seed,
/// epoch and sample decide alone. Threads of its own read and decode ahead:
///
///   order -> fetch -> [queue] -> decode, crop, resize into the batch -> next()
///
/// A process that was forked while an epoch was under way has no such threads: it can start() anew.
class Loader {
 public:
  /// Throws Error(usage) where the options make no sense for these datasets; with OnError::raise
  /// Error(corrupt) where an index says that samples are missing: a shard that is cut off, say.
  Loader(const std::vector<LoadSource>& sources, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  const LoaderOptions& options() const { return parts_.options; }
  const Order& order() const { return parts_.order; }
  const Sources& sources() const { return parts_.sources; }
  /// Batches of this rank from `position` of an epoch to its end.
  uint64_t batches(uint64_t position) const;

  /// Begins an epoch anew, or somewhere in it; what was under way is dropped.
  void start(uint64_t epoch, uint64_t position);
  /// The next batch; nothing at the end of the epoch, or when start() was not called. Throws what
  /// went wrong with a sample, naming its key, in the place of its batch; the epoch is over then.
  /// Waits at most `patience`; then the batch comes with a later call.
  enum class Next : uint8_t { batch, not_yet, end };
  Next next(std::shared_ptr<LoadedBatch>& batch, std::chrono::milliseconds patience);
  /// Of the epoch that was started last.
  LoaderStats stats() const;

  /// What the stages share.
  struct Parts {
    Parts(const std::vector<LoadSource>& given, LoaderOptions wanted);

    LoaderOptions options;
    Sources sources;
    Order order;
    std::vector<ColumnPlan> columns;
    std::unique_ptr<SampleCache> cache;
    std::shared_ptr<BatchMemory> memory;
    uint64_t bytes_per_sample = 1;
    bool has_pictures = false;
    std::vector<Fault> missing;  // data that the indexes say are missing
  };

 private:
  std::shared_ptr<class EpochRun> run() const;
  void leave_parents_run();

  Parts parts_;
  mutable std::mutex mutex_;
  std::shared_ptr<class EpochRun> run_;
  int process_;  // whose threads the run has
};

}  // namespace stoker
