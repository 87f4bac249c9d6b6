// SPDX-License-Identifier: Apache-2.0
#include "stage/unseen_source.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"
#include "dataset/index.h"
#include "os/file_system.h"
#include "os/node.h"
#include "stage/inventory.h"
#include "stage/references.h"
#include "stage/shard_copy.h"
#include "stage/staged_copy.h"
#include "stage/verify_copy.h"

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
  for (StagedItem& item : list_staged({place}).items) {
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

/// Compares what is there with the checksums of the copy's own index.
void verify_shards(const Index& index, const std::string& root, const StageOptions& options) {
  std::vector<FileToVerify> files;
  for (const ShardToStage& shard : shards_of(index)) {
    files.push_back({root + "/" + shard.path, shard.size, checksum_of(shard)});
  }
  const unsigned jobs = options.jobs != 0 ? options.jobs : usable_cores();
  const std::vector<size_t> differing = differing_files(files, jobs, options.progress);
  if (differing.empty()) return;
  throw Error(
      ErrorKind::corrupt,
      fmt::format("{}: is damaged ({} of {} shards are), and the dataset cannot be seen "
                  "from here: run stoker stage --before-job --verify to copy it again",
                  printable(files[differing.front()].path), differing.size(), files.size()));
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
                                {options.for_job, options.run});
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
  if (options.verify) verify_shards(Index(*index), paths.root, options);
  result.staged_bytes = result.reused_bytes = result.target.bytes = result.bytes;
  result.complete = result.verified = true;
  result.verified_now = options.verify;
  result.verified_at = options.verify ? time_of_day_ns() / 1'000'000'000 : item->verified_at;
  return result;
}

}  // namespace stoker
