// SPDX-License-Identifier: Apache-2.0
#include "load/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "index/build_index.h"
#include "load/image_field.h"
#include "os/page_cache.h"

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

/// Every file that samples lie in.
std::set<std::string> files_of(const OpenedDataset& dataset) {
  constexpr uint64_t kAtOnce = 4096;
  ReaderOptions options;
  options.roots = {dataset.paths.root};
  options.threads = 1;
  const Reader reader(dataset.index, options);
  std::set<std::string> files;
  std::vector<uint64_t> samples;
  for (uint64_t first = 0; first < dataset.index->size(); first += samples.size()) {
    samples.clear();
    for (uint64_t i = first; i < std::min(first + kAtOnce, dataset.index->size()); ++i) {
      samples.push_back(i);
    }
    const Batch batch = reader.locate(samples);
    for (const Item& item : batch.items) {
      if (item.length > 0) files.insert(reader.fault(batch, item, "").shard);
    }
  }
  files.erase("");
  return files;
}

/// Returns the share that stayed in memory.
double forget(const OpenedDataset& dataset, const std::set<std::string>& files) {
  CachedBytes left;
  for (const std::string& file : files) {
    const CachedBytes of_file = drop_from_page_cache(dataset.paths.root + "/" + file);
    left.cached += of_file.cached;
    left.all += of_file.all;
  }
  return left.all > 0 ? static_cast<double>(left.cached) / static_cast<double>(left.all) : 0;
}

LoaderOptions loader_options(const LoadOptions& options) {
  LoaderOptions loading;
  loading.batch_size = options.batch_size;
  loading.threads = options.threads;
  loading.seed = loading.order.seed = options.seed;
  loading.order.kind = options.order;
  if (options.skip_bad) loading.on_error = OnError::skip;
  if (options.raw) return loading;
  loading.image = options.image;
  GeometryStep crop;
  crop.kind = GeometryStep::Kind::random_resized_crop;
  crop.size = {options.crop, options.crop};
  GeometryStep flip;
  flip.kind = GeometryStep::Kind::horizontal_flip;
  loading.picture.emplace().geometry = Geometry({crop, flip});
  return loading;
}

}  // namespace

std::string LoadResult::next_step(unsigned cores) const {
  const std::string_view limit = limit_of(last);
  const double rate = epochs.empty() ? 0 : epochs.back().samples_per_s();
  if (limit == "decode") {
    return fmt::format(
        "a model that takes more than {:.0f} samples/s needs more than {} cores "
        "(--cpus-per-task), or smaller photos",
        rate, cores);
  }
  if (limit == "fetch" && last.fetch.computing < 0.5 * last.fetch.busy) {
    return format == "folder"
               ? fmt::format("stoker pack {} TRAIN: few large files instead of many small ones",
                             printable(path))
               : fmt::format("copy the dataset to a local disk{}",
                             in_blocks ? "" : ", or try --order blocks");
  }
  return fmt::format("a model that takes less than {:.0f} samples/s does not wait for data", rate);
}

LoadResult load(const std::string& path, const LoadOptions& options) {
  IndexOptions indexing;
  indexing.progress = options.progress;
  const OpenedDataset opened = open_dataset(path, indexing);
  const std::vector<LoadSource> sources = {{opened.index, {opened.paths.root}}};
  if (!options.raw) (void)find_image(Sources(sources), options.image, true);
  Loader loader(sources, loader_options(options));
  LoadResult result;
  result.path = path;
  result.format = opened.index->manifest().format;
  result.in_blocks = options.order == OrderOptions::Kind::blocks;
  result.mixing = loader.order().mixing(options.batch_size);
  if (options.progress != nullptr) {
    options.progress->begin("loading", opened.index->size() * options.epochs, 0);
  }
  const std::set<std::string> files = options.cold ? files_of(opened) : std::set<std::string>();
  std::set<std::string> named;
  for (uint64_t epoch = 0; epoch < options.epochs; ++epoch) {
    if (options.cold)
      result.kept_in_memory = std::max(result.kept_in_memory, forget(opened, files));
    result.epochs.push_back(take_epoch(loader, epoch, options.progress));
    result.last = loader.stats();
    for (const Fault& fault : result.last.bad) {
      if (named.insert(fault.message()).second) result.bad.push_back(fault);
    }
  }
  return result;
}

}  // namespace stoker
