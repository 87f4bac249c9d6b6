// SPDX-License-Identifier: Apache-2.0
#include "load/load.h"

#include <set>

#include "index/build_index.h"

namespace stoker {
namespace {

using Clock = std::chrono::steady_clock;

/// Takes all batches of an epoch; looks now and then whether it should stop.
EpochRate take_epoch(Loader& loader, uint64_t epoch, Progress* progress) {
  constexpr std::chrono::milliseconds kPatience(50);
  EpochRate rate;
  const Clock::time_point begin = Clock::now();
  loader.start(epoch, 0);
  std::shared_ptr<LoadedBatch> batch;
  for (;;) {
    const Loader::Next next = loader.next(batch, kPatience);
    if (next == Loader::Next::end) break;
    if (next == Loader::Next::batch) rate.samples += batch->rows;
    if (progress == nullptr) continue;
    if (next == Loader::Next::batch) progress->samples += batch->rows;
    progress->check_stop();
  }
  rate.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  rate.bytes = loader.stats().bytes;
  return rate;
}

}  // namespace

LoadResult load(const std::string& path, const LoadOptions& options) {
  IndexOptions indexing;
  indexing.progress = options.progress;
  const OpenedDataset opened = open_dataset(path, indexing);
  LoaderOptions loading;
  loading.batch_size = options.batch_size;
  loading.threads = options.threads;
  loading.seed = options.seed;
  loading.order.seed = options.seed;
  if (!options.shuffle) loading.order.kind = OrderOptions::Kind::sequential;
  if (options.skip_bad) loading.on_error = OnError::skip;
  GeometryStep crop;
  crop.kind = GeometryStep::Kind::random_resized_crop;
  crop.size = {options.crop, options.crop};
  GeometryStep flip;
  flip.kind = GeometryStep::Kind::horizontal_flip;
  loading.picture.emplace().geometry = Geometry({crop, flip});
  Loader loader({{opened.index, {opened.paths.root}}}, loading);
  LoadResult result;
  if (options.progress != nullptr) {
    options.progress->begin("loading", opened.index->size() * options.epochs, 0);
  }
  std::set<std::string> named;
  for (uint64_t epoch = 0; epoch < options.epochs; ++epoch) {
    result.epochs.push_back(take_epoch(loader, epoch, options.progress));
    result.last = loader.stats();
    for (const Fault& fault : result.last.bad) {
      if (named.insert(fault.sample).second) result.bad.push_back(fault);
    }
  }
  return result;
}

}  // namespace stoker
