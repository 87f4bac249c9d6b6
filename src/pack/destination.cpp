// SPDX-License-Identifier: Apache-2.0
#include "pack/destination.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/inner_path.h"
#include "base/json.h"
#include "base/text.h"
#include "dataset/index_trust.h"
#include "dataset/segment.h"
#include "format/format.h"
#include "index/segment_builder.h"
#include "os/safe_directory.h"
#include "pack/plan.h"
#include "pack/shard_job.h"

namespace stoker {
namespace fs = std::filesystem;

void refuse_links(const Destination& destination, const std::vector<std::string>& names) {
  std::error_code ignored;
  if (!fs::is_directory(destination.root, ignored)) return;
  SafeDirectory at(destination.root);
  for (const std::string& name : names) {
    std::optional<SafeDirectory> next = name.empty() ? std::nullopt : at.find(name);
    if (!name.empty() && !next) return;
    if (next) at = std::move(*next);
  }
}

void refuse_untrusted(const Destination& destination) {
  const std::string index = destination.root + "/" + kIndexDirectory;
  if (is_trusted_index(destination.root, index, IndexUse::read)) return;
  throw Error(ErrorKind::permission,
              fmt::format("{}: another user has made it, so what it says about shards and plans "
                          "cannot be trusted: choose another destination",
                          printable(index)));
}

void remove_plan(const Destination& destination) {
  refuse_links(destination, {kIndexDirectory});
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

void remove_shard(const SafeDirectory& directory, const std::string& name) {
  directory.remove(name);
  directory.remove(OutputFile::temporary_name(name));
}

/// Whether the origin in a manifest says that the pack had a split of this name.
bool is_split(const Json& origin, const std::string& name) {
  const auto options = origin.is_object() ? origin.find("options") : origin.end();
  if (!origin.is_object() || options == origin.end() || !options->is_object()) return false;
  const auto split = options->find("split");
  return split != options->end() && split->is_object() && split->contains(name);
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

/// What the shards of a dataset that `pack` completed are named after: the source, or the split.
std::string stem_of_shards(const Json& origin, const std::string& split) {
  if (!split.empty()) return split;
  const auto options = origin.is_object() ? origin.find("options") : origin.end();
  if (!origin.is_object() || options == origin.end() || !options->is_object()) return "";
  const auto source = options->find("source");
  const bool known = source != options->end() && source->is_string();
  return known ? name_from_json(source->get<std::string>()) : "";
}

/// Whether `pack` may have named a file so: NAME-000012 and what follows, or the only file. Which
/// number the shard has is not compared: others may have been removed, and the rest indexed again.
bool is_named_by_pack(const WriteFormat& write, const std::string& stem, const std::string& name) {
  if (name == write.shard_name(stem, 0, 1)) return true;
  const std::string first = write.shard_name(stem, 0, 2);
  const size_t at = std::min(stem.size() + 1, first.size());
  const auto digits = [at](const std::string& text) {
    return std::min(text.find_first_not_of("0123456789", at), text.size()) - at;
  };
  return name.size() > at && name.starts_with(first.substr(0, at)) && digits(name) >= digits(first);
}

/// Whether an overwrite that was killed has removed a shard, and after it its segment.
bool was_removed(const std::string& directory, const std::string& segment) {
  std::string_view shard = segment;  // NAME.000.CRC.seg
  for (int i = 0; i < 3; ++i) shard = shard.substr(0, shard.rfind('.'));
  const std::string name = inner_name(percent_unescape(shard), directory);
  return !fs::exists(directory + "/" + kIndexDirectory + "/" + segment) &&
         !fs::exists(directory + "/" + name);
}

/// The files of one shard that `pack` completed: next to each other, and named as it names them.
void add_shards(const std::string& path, const WriteFormat& write, const std::string& stem,
                std::vector<std::string>& shards) {
  const Segment segment(path);
  for (uint32_t i = 0; i < segment.shard_count(); ++i) {
    std::string name = inner_name(segment.shard(i).path, path);
    if (!is_named_by_pack(write, stem, name)) {
      throw Error(ErrorKind::corrupt, fmt::format("{}: names '{}', which pack did not write",
                                                  printable(path), printable(name)));
    }
    shards.push_back(std::move(name));
  }
}

/// The shards of a dataset that `pack` completed: those that its manifest, with an origin, speaks
/// of. Nothing else is ours.
std::optional<std::vector<std::string>> complete_shards(const Destination& destination,
                                                        const std::string& split) {
  const std::string directory = destination.dataset(split);
  const std::string index = directory + "/" + kIndexDirectory;
  if (!fs::exists(index + "/" + kManifestName)) return std::nullopt;
  try {
    const Manifest manifest = Manifest::read(index + "/" + kManifestName);
    if (manifest.origin.empty()) return std::nullopt;
    const Format* format = find_format(manifest.format);
    if (format == nullptr || format->write == nullptr) return std::nullopt;
    const std::string stem = stem_of_shards(parse_json(manifest.origin), split);
    std::vector<std::string> shards;
    for (const SegmentEntry& entry : manifest.segments) {
      if (was_removed(directory, entry.file)) continue;
      add_shards(index + "/" + entry.file, *format->write, stem, shards);
    }
    add_companions(manifest.format, shards);
    return shards;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt && error.kind() != ErrorKind::not_found) throw;
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: its index is damaged, so pack cannot tell what it has written "
                            "there, and removes nothing: choose another directory, or remove this "
                            "one ({})",
                            printable(directory), error.what()));
  }
}

/// What an earlier pack wrote to one directory, opened so that what goes is what was looked at.
struct Removal {
  SafeDirectory directory;
  std::vector<std::string> shards;
  std::set<std::string> of_index;  // names in .stoker that go; the manifest is always among them
};

std::optional<Removal> removal_of(const Destination& destination, const std::string& name,
                                  std::vector<std::string> shards) {
  SafeDirectory root(destination.root);
  std::optional<SafeDirectory> directory = name.empty() ? std::move(root) : root.find(name);
  if (!directory) return std::nullopt;
  return Removal{std::move(*directory), std::move(shards), {}};
}

/// The manifest goes last: until then it says what is ours.
void remove(const Removal& removal) {
  const std::optional<SafeDirectory> index = removal.directory.find(kIndexDirectory);
  for (const std::string& shard : removal.shards) remove_shard(removal.directory, shard);
  if (!index) return;
  for (const std::string& name : removal.of_index) index->remove(name);
  index->remove(kManifestName);
}

std::optional<Removal> complete_at(const Destination& destination, const std::string& name) {
  const std::string directory = destination.dataset(name);
  std::optional<std::vector<std::string>> shards = complete_shards(destination, name);
  if (!shards) return std::nullopt;
  std::optional<Removal> removal = removal_of(destination, name, std::move(*shards));
  for (const std::string& file : names_in(directory + "/" + kIndexDirectory)) {
    const bool ours =
        file.ends_with(".seg") || file.ends_with(".rows") || file.ends_with(".stoker-tmp");
    if (ours && removal) removal->of_index.insert(file);
  }
  return removal;
}

/// Directories of the destination that are splits of a complete pack. A link is none: nothing is
/// removed through one.
std::vector<std::string> complete_splits(const Destination& destination) {
  std::vector<std::string> splits;
  for (const std::string& name : names_in(destination.root)) {
    const std::string directory = destination.root + "/" + name;
    const std::string path = directory + "/" + kIndexDirectory + "/" + kManifestName;
    if (!fs::is_directory(fs::symlink_status(directory)) || !fs::exists(path)) continue;
    const std::string origin = Manifest::read(path).origin;
    if (origin.empty() || !is_split(parse_json(origin), name)) continue;
    splits.push_back(name);
  }
  return splits;
}

/// What an unfinished pack has written to one of its datasets: the plan knows the names.
std::optional<Removal> unfinished_at(const Destination& destination, const Plan& plan,
                                     const PlannedDataset& dataset) {
  std::optional<Removal> removal =
      removal_of(destination, dataset.directory, planned_files(plan, dataset));
  if (!removal) return std::nullopt;
  const std::set<std::string> there =
      names_in(destination.dataset(dataset.directory) + "/" + kIndexDirectory);
  for (const PlannedShard& shard : dataset.shards) {
    const std::string stem = SegmentBuilder::stem(segment_name(shard.name), 0);
    for (const std::string& file : segments_named(there, stem)) {
      removal->of_index.insert(row_index_path(file));
      removal->of_index.insert(file);
    }
  }
  for (const std::string& name : there) {
    if (name.ends_with(".stoker-tmp")) removal->of_index.insert(name);
  }
  return removal;
}

}  // namespace

// All is looked at before anything goes. The plan goes last: it knows what was not finished.
void remove_earlier(const Destination& destination) {
  refuse_links(destination, {kIndexDirectory});
  std::vector<Removal> removals;
  std::vector<std::string> directories;
  const auto add = [&](std::optional<Removal> removal) {
    if (removal) removals.push_back(std::move(*removal));
  };
  add(complete_at(destination, ""));
  for (const std::string& name : complete_splits(destination)) {
    refuse_links(destination, {name, kIndexDirectory});
    add(complete_at(destination, name));
    directories.push_back(name);
  }
  if (const std::optional<Plan> plan = Plan::read(destination.plan)) {
    for (const PlannedDataset& dataset : plan->datasets) {
      refuse_links(destination, {dataset.directory, kIndexDirectory});
      add(unfinished_at(destination, *plan, dataset));
      if (!dataset.directory.empty()) directories.push_back(dataset.directory);
    }
  }
  for (const Removal& removal : removals) remove(removal);
  for (const std::string& name : directories) {
    remove_if_empty(destination.dataset(name) + "/" + kIndexDirectory);
    remove_if_empty(destination.dataset(name));
  }
  remove_plan(destination);
}

bool holds_pack(const Destination& destination) {
  return complete_shards(destination, "") || !complete_splits(destination).empty();
}

void refuse_foreign(const Destination& destination) {
  std::set<std::string> names = names_in(destination.root);
  for (const std::string& shard :
       complete_shards(destination, "").value_or(std::vector<std::string>())) {
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

void refuse_to_lose(const Destination& destination, const Index& source) {
  std::vector<std::string> names = complete_splits(destination);
  names.emplace_back();
  for (const std::string& name : names) {
    if (!complete_shards(destination, name)) continue;
    const Index packed(destination.dataset(name) + "/" + kIndexDirectory);
    for (uint64_t sample = 0; sample < packed.size(); ++sample) {
      const std::string key = packed.key(sample);
      if (source.find(key)) continue;
      throw Error(ErrorKind::usage,
                  fmt::format("{}: holds a complete pack, but of a source that was different then: "
                              "it lacks the sample '{}' now; add --overwrite to pack it anew",
                              printable(destination.root), printable(key)));
    }
  }
}

}  // namespace stoker
