// SPDX-License-Identifier: Apache-2.0
#include "stage/unseen_source.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "dataset/index.h"
#include "os/file_system.h"
#include "stage/inventory.h"
#include "stage/references.h"
#include "stage/shard_copy.h"
#include "stage/staged_copy.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

/// Whether anything is there, with or without ::INNER.
bool is_there(const std::string& dataset) {
  std::error_code ignored;
  const size_t inner = dataset.rfind("::");
  return fs::exists(dataset, ignored) ||
         (inner != std::string::npos && fs::exists(dataset.substr(0, inner), ignored));
}

std::optional<StagedItem> newest_copy(const std::string& dataset, const std::string& place) {
  const std::string source = fs::absolute(dataset).lexically_normal().string();
  std::optional<StagedItem> newest;
  for (StagedItem& item : list_staged({place})) {
    if (!item.own || !item.complete || item.source != source) continue;
    if (!newest || item.age_s < newest->age_s) newest = std::move(item);
  }
  return newest;
}

/// What the copy's own index says, compared with what lies there: a site deletes single files.
void look_at_shards(const Index& index, const std::string& root, StageResult& result) {
  result.format = index.manifest().format;
  result.samples = index.size();
  for (const ShardToStage& shard : shards_of(index)) {
    ++result.shards;
    result.bytes += shard.size;
    const auto info = real_file_system().info(root + "/" + shard.path, false);
    if (!info || info->size != shard.size) ++result.missing_shards;
  }
}

}  // namespace

std::optional<StageResult> copy_of_unseen(const std::string& dataset, const StageOptions& options) {
  if (options.place.empty() || is_there(dataset)) return std::nullopt;
  const std::optional<StagedItem> item = newest_copy(dataset, options.place);
  if (!item) return std::nullopt;
  const std::optional<SafeDirectory> top = own_directory(item->place, std::nullopt, false);
  if (!top) return std::nullopt;
  const HeldReference reference(*top, std::nullopt, ::geteuid(),
                                fs::path(item->directory).filename().string(), work_mark(),
                                options.for_job);
  StageResult result;
  result.target.source = dataset;
  result.target.place = item->place;
  result.target.path = item->path;
  result.target.data = item->directory + "/data";
  result.target.payoff.known_from = "the dataset cannot be seen from here";
  const DatasetPaths paths = DatasetPaths::of(item->path);
  const std::optional<std::string> index = paths.existing_index();
  if (!index) return std::nullopt;  // it has just been cleaned
  look_at_shards(Index(*index), paths.root, result);
  if (result.missing_shards > 0) {
    throw Error(ErrorKind::io,
                fmt::format("{}: {} of {} shards are not there any more; the dataset {} cannot be "
                            "seen from here: run stoker stage --before-job again",
                            printable(item->path), result.missing_shards, result.shards,
                            printable(dataset)));
  }
  // It was compared when it was brought; a full index is there to do it again.
  result.staged_bytes = result.reused_bytes = result.target.bytes = result.bytes;
  result.complete = result.verified = true;
  return result;
}

}  // namespace stoker
