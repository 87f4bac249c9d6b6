// SPDX-License-Identifier: Apache-2.0
#include "pack/destination.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "dataset/segment.h"
#include "format/format.h"
#include "index/segment_builder.h"
#include "pack/plan.h"
#include "pack/shard_job.h"

namespace stoker {
namespace fs = std::filesystem;

void remove_plan(const Destination& destination) {
  fs::remove_all(destination.old_plan);
  if (!fs::exists(destination.plan)) return;
  fs::rename(destination.plan, destination.old_plan);
  fs::remove_all(destination.old_plan);
}

void remove_if_empty(const fs::path& directory) {
  std::error_code ignored;
  fs::remove(directory, ignored);
}

namespace {

void remove_shard(const std::string& path) {
  fs::remove(path);
  fs::remove(OutputFile::temporary_name(path));
}

void add_companions(std::string_view format, std::vector<std::string>& names) {
  const Format* written = find_format(format);
  if (written == nullptr || written->write == nullptr) return;
  const auto companions = written->write->companion_names;
  names.insert(names.end(), companions.begin(), companions.end());
}

/// The files that a plan says will be written for one of its datasets.
std::vector<std::string> planned_files(const Plan& plan, const PlannedDataset& dataset) {
  std::vector<std::string> names;
  for (const PlannedShard& shard : dataset.shards) {
    for (const std::string& ending : plan.endings) names.push_back(shard.name + ending);
  }
  add_companions(plan.options.value("to", ""), names);
  return names;
}

/// The shards of a dataset that `pack` completed: those that its manifest, with an origin, speaks
/// of. Nothing else is ours.
std::optional<std::vector<std::string>> complete_shards(const std::string& directory) {
  const std::string index = directory + "/" + kIndexDirectory;
  if (!fs::exists(index + "/" + kManifestName)) return std::nullopt;
  try {
    const Manifest manifest = Manifest::read(index + "/" + kManifestName);
    if (manifest.origin.empty()) return std::nullopt;
    std::vector<std::string> shards;
    for (const SegmentEntry& entry : manifest.segments) {
      const Segment segment(index + "/" + entry.file);
      for (uint32_t i = 0; i < segment.shard_count(); ++i) shards.push_back(segment.shard(i).path);
    }
    add_companions(manifest.format, shards);
    return shards;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt && error.kind() != ErrorKind::not_found) throw;
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: its index is damaged, so pack cannot tell what it has written "
                            "there: choose another directory, or remove this one",
                            printable(directory)));
  }
}

/// The manifest goes last: until then it says what is ours.
void remove_complete(const std::string& directory) {
  const std::string index = directory + "/" + kIndexDirectory;
  const std::optional<std::vector<std::string>> shards = complete_shards(directory);
  if (!shards) return;
  for (const std::string& shard : *shards) remove_shard(directory + "/" + shard);
  for (const std::string& name : names_in(index)) {
    const bool ours =
        name.ends_with(".seg") || name.ends_with(".rows") || name.ends_with(".stoker-tmp");
    if (ours) fs::remove(index + "/" + name);
  }
  fs::remove(index + "/" + kManifestName);
}

/// Directories of the destination that are splits of a complete pack.
std::vector<std::string> complete_splits(const Destination& destination) {
  std::vector<std::string> splits;
  for (const std::string& name : names_in(destination.root)) {
    const std::string path =
        destination.root + "/" + name + "/" + kIndexDirectory + "/" + kManifestName;
    if (!fs::exists(path)) continue;
    const std::string origin = Manifest::read(path).origin;
    if (origin.empty() || !parse_json(origin).at("options").at("split").contains(name)) continue;
    splits.push_back(name);
  }
  return splits;
}

/// Removes what an unfinished pack has written: the plan knows the names.
void remove_unfinished(const Destination& destination, const Plan& plan) {
  for (const PlannedDataset& dataset : plan.datasets) {
    const std::string directory = destination.dataset(dataset.directory);
    const std::string index = directory + "/" + kIndexDirectory;
    const std::set<std::string> there = names_in(index);
    for (const std::string& name : planned_files(plan, dataset)) {
      remove_shard(directory + "/" + name);
    }
    for (const PlannedShard& shard : dataset.shards) {
      const std::string stem = SegmentBuilder::stem(segment_name(shard.name), 0);
      for (const std::string& file : segments_named(there, stem)) {
        fs::remove(index + "/" + row_index_path(file));
        fs::remove(index + "/" + file);
      }
    }
    for (const std::string& name : there) {
      if (name.ends_with(".stoker-tmp")) fs::remove(index + "/" + name);
    }
    fs::remove(index + "/" + kManifestName);
    if (dataset.directory.empty()) continue;
    remove_if_empty(index);
    remove_if_empty(directory);
  }
}

}  // namespace

// The plan goes last: it knows what was not finished.
void remove_earlier(const Destination& destination) {
  remove_complete(destination.root);
  for (const std::string& name : complete_splits(destination)) {
    const std::string directory = destination.dataset(name);
    remove_complete(directory);
    remove_if_empty(directory + "/" + kIndexDirectory);
    remove_if_empty(directory);
  }
  if (const std::optional<Plan> plan = Plan::read(destination.plan)) {
    remove_unfinished(destination, *plan);
  }
  remove_plan(destination);
}

bool holds_pack(const Destination& destination) {
  return complete_shards(destination.root) || !complete_splits(destination).empty();
}

void refuse_foreign(const Destination& destination) {
  std::set<std::string> names = names_in(destination.root);
  for (const std::string& shard :
       complete_shards(destination.root).value_or(std::vector<std::string>())) {
    names.erase(shard);
  }
  for (const std::string& split : complete_splits(destination)) names.erase(split);
  if (const std::optional<Plan> plan = Plan::read(destination.plan)) {
    for (const PlannedDataset& dataset : plan->datasets) {
      names.erase(dataset.directory);
      for (const std::string& file : planned_files(*plan, dataset)) {
        names.erase(file);
        names.erase(fs::path(OutputFile::temporary_name(file)).filename().string());
      }
    }
  }
  names.erase(kIndexDirectory);
  if (names.empty()) return;
  throw Error(ErrorKind::usage,
              fmt::format("{}: holds files that pack did not write ({}{}): choose an empty "
                          "directory",
                          printable(destination.root), printable(*names.begin()),
                          names.size() > 1 ? ", …" : ""));
}

}  // namespace stoker
