// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataset/reader.h"
#include "load/crop.h"
#include "load/order.h"

namespace stoker {

/// What to do with a sample that cannot be read or decoded.
enum class OnError : uint8_t {
  raise,    // next() throws what is wrong with it
  skip,     // its batch has one row less
  replace,  // the sample at the next position of the epoch takes its place
};

struct LoaderOptions {
  uint64_t batch_size = 256;
  std::optional<uint64_t> shuffle;  // seed of the order; none: as they lie
  uint64_t seed = 0;                // of what is random about a sample
  Ranks ranks;
  Remainder remainder = Remainder::pad;
  bool drop_last = false;  // a last batch that is not full
  OnError on_error = OnError::raise;
  CropRecipe recipe;
  unsigned threads = 0;  // that decode; 0: one per usable core
  unsigned ahead = 3;    // batches that are made before they are asked for
};

/// One batch. Stays what it is as long as somebody holds it.
struct LoadedBatch {
  uint64_t rows = 0;
  std::unique_ptr<uint8_t[]> images;  // rows x height x width x 3
  std::vector<uint64_t> samples;      // by row
  std::vector<int64_t> labels;        // by row; empty where the dataset has none
  uint64_t position = 0;              // where the epoch stands behind it
};

/// Seconds that the threads of a stage were busy, or waited; over all of them.
struct StageTime {
  double busy = 0;
  double waiting_for_input = 0;
  double waiting_for_room = 0;
};

struct LoaderStats {
  StageTime fetch, decode;
  double consumer_waited = 0;  // for next()
  double seconds = 0;          // since the epoch began
  uint64_t samples = 0, bytes = 0;
  unsigned fetch_threads = 0, decode_threads = 0;
  std::vector<Fault> bad;  // samples that were skipped or replaced
};

/// Feeds training: photos of a dataset as batches of pixels, in an order and with crops that seed,
/// epoch and sample decide alone. Threads of its own read and decode ahead:
///
///   order -> fetch -> [queue] -> decode, crop, resize into the batch -> next()
class Loader {
 public:
  Loader(std::shared_ptr<const Index> index, std::vector<std::string> roots,
         const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  const LoaderOptions& options() const { return options_; }
  /// Batches of this rank from `position` of an epoch to its end.
  uint64_t batches(uint64_t position) const;

  /// Begins an epoch anew, or somewhere in it; what was under way is dropped.
  void start(uint64_t epoch, uint64_t position);
  /// The next batch; nothing at the end of the epoch, or when start() was not called. Throws what
  /// went wrong with a sample, naming its key; the epoch is over then.
  /// Waits at most `patience`; then the batch comes with a later call.
  enum class Next : uint8_t { batch, not_yet, end };
  Next next(std::shared_ptr<LoadedBatch>& batch, std::chrono::milliseconds patience);
  /// Of the epoch that was started last.
  LoaderStats stats() const;

 private:
  struct Run;
  std::shared_ptr<const Index> index_;
  LoaderOptions options_;
  Reader reader_;
  std::unique_ptr<Run> run_;
};

}  // namespace stoker
