// SPDX-License-Identifier: Apache-2.0
#include "pack/earlier_pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "dataset/index.h"
#include "dataset/manifest.h"
#include "index/build_index.h"
#include "os/scratch_directory.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

std::vector<std::string> dataset_directories(const PackOptions& options) {
  if (options.split.empty()) return {""};
  std::vector<std::string> names;
  for (const auto& [name, share] : options.split) names.push_back(name);
  return names;
}

/// The source as it is now, in a directory of the caller's.
Index scan_now(const Source& source, const PackOptions& options, const std::string& directory) {
  IndexOptions scan;
  scan.views = true;
  scan.jobs = options.jobs;
  scan.progress = options.progress;
  (void)build_index_in(source, detect_format(source), directory, scan);
  return Index(directory);
}

/// When a file of the source was modified last: nanoseconds, as the file system says.
int64_t newest_change(const Index& source) {
  int64_t newest = 0;
  for (uint32_t s = 0; s < source.manifest().segments.size(); ++s) {
    const Segment& segment = source.segment(s);
    for (uint32_t i = 0; i < segment.shard_count(); ++i) {
      newest = std::max(newest, segment.shard(i).modified_ns);
    }
    for (uint64_t i = 0; i < segment.samples(); ++i) {
      for (uint32_t f = 0; f < segment.fields().size(); ++f) {
        const Extent extent = segment.locate(i, f).extent;
        if (extent.container != Container::file) continue;
        newest = std::max(newest, static_cast<int64_t>(extent.offset));  // of a whole file
      }
    }
  }
  return newest;
}

/// Whether the source is what the plan was made for.
bool still_the_source(const Destination& destination, const Source& source,
                      const PackOptions& options) {
  try {
    const ScratchDirectory scratch;
    return fingerprint_of(scan_now(source, options, scratch.path()), true) ==
           fingerprint_of(Index(destination.plan + "/source"), true);
  } catch (const Error& error) {
    if (!fs::exists(destination.plan + "/source/" + kManifestName)) {
      throw Error(ErrorKind::corrupt,
                  damaged_plan(destination.plan, "its list of samples is missing"));
    }
    throw;
  }
}

}  // namespace

std::optional<PackResult> complete_already(const Destination& destination, const Source& source,
                                           const PackOptions& options, const Json& wanted) {
  PackResult result;
  uint64_t fingerprint = 0;
  int64_t completed = 0;
  uint64_t planned_without = 0;
  result.already_complete = true;
  for (const std::string& name : dataset_directories(options)) {
    const std::string directory = destination.dataset(name);
    const std::string path = directory + "/" + kIndexDirectory + "/" + kManifestName;
    if (!fs::exists(path)) return std::nullopt;
    const Manifest manifest = Manifest::read(path);
    if (manifest.origin.empty()) return std::nullopt;
    const Json origin = parse_json(manifest.origin);
    if (!origin.is_object() || origin.value("options", Json()) != wanted) return std::nullopt;
    fingerprint = checked<uint64_t>(origin.at("fingerprint"));
    completed = real_file_system().info(path, true).value_or(FileInfo{}).modified_ns;
    result.filtered = checked<uint64_t>(origin.at("filtered"));
    result.hidden = checked<uint64_t>(origin.at("hidden"));
    result.unlisted = checked<uint64_t>(origin.at("unlisted"));
    result.format = manifest.format;
    result.source_format = origin.at("source_format").get<std::string>();
    result.samples += manifest.samples();
    result.shards += manifest.shards();
    result.payload_bytes += manifest.bytes();
    result.datasets.push_back(directory);
    const std::string index_directory = directory + "/" + kIndexDirectory;
    result.row_index.add(row_index_summary(index_directory, manifest.segments));
    if (origin.contains("unused")) {
      result.unused = origin["unused"].get<std::vector<std::string>>();
    }
    if (origin.contains("lossy")) result.lossy = origin["lossy"].get<std::vector<std::string>>();
    for (const SegmentEntry& entry : manifest.segments) {
      const Segment segment(index_directory + "/" + entry.file);
      for (uint32_t i = 0; i < segment.shard_count(); ++i) {
        const Shard shard = segment.shard(i);
        const auto file = real_file_system().info(directory + "/" + shard.path, true);
        if (!file || file->size != shard.size) {
          throw Error(ErrorKind::corrupt,
                      fmt::format("{}/{}: {}: add --overwrite to pack anew", printable(directory),
                                  printable(shard.path), file ? "has changed" : "is missing"));
        }
        result.bytes += shard.size;
      }
      result.left_out.insert(result.left_out.end(), segment.faults().begin(),
                             segment.faults().end());
    }
    for (const Json& fault : origin.at("left_out")) {
      result.left_out.push_back(fault_from_json(fault));
      if (result.left_out.back().transient) ++planned_without;
    }
  }
  result.retried = count_transient(result.left_out);
  // What could not even be looked at then makes another source of it now.
  if (planned_without > 0) return result;
  const ScratchDirectory scratch;
  const Index now = scan_now(source, options, scratch.path());
  if (fingerprint_of(now, false) != fingerprint) {
    throw Error(ErrorKind::usage,
                fmt::format("{}: holds a complete pack, but of a source that was different then: "
                            "add --overwrite to pack it anew",
                            printable(destination.root)));
  }
  if (newest_change(now) > completed) {
    throw Error(ErrorKind::usage,
                fmt::format("{}: holds a complete pack, but the source was modified after it: "
                            "stoker check {} --compare {} tells whether they differ; add "
                            "--overwrite to pack it anew",
                            printable(destination.root), printable(destination.root),
                            printable(source.root)));
  }
  return result;
}

std::optional<Plan> plan_to_overwrite(const Destination& destination, const Source& source,
                                      const PackOptions& options, const Json& wanted) {
  std::optional<Plan> plan = Plan::read(destination.plan);
  if (!plan || plan->options != wanted) return std::nullopt;
  return still_the_source(destination, source, options) ? plan : std::nullopt;
}

std::optional<Plan> plan_to_continue(const Destination& destination, const Source& source,
                                     const PackOptions& options, const Json& wanted) {
  std::optional<Plan> plan = Plan::read(destination.plan);
  if (!plan) {
    const fs::path index = fs::path(destination.root) / kIndexDirectory;
    remove_if_empty(index);
    if (fs::exists(index) || holds_pack(destination)) {
      throw Error(ErrorKind::usage,
                  fmt::format("{}: holds another dataset: choose an empty directory, or add "
                              "--overwrite to replace what pack wrote there",
                              printable(destination.root)));
    }
    return plan;
  }
  if (plan->options != wanted) {
    throw Error(ErrorKind::usage,
                fmt::format("{}: holds an unfinished pack with other options: repeat those to go "
                            "on, or add --overwrite to begin anew",
                            printable(destination.root)));
  }
  if (!still_the_source(destination, source, options)) {
    if (count_transient(plan->left_out) > 0) return std::nullopt;
    throw Error(ErrorKind::usage,
                fmt::format("{}: holds an unfinished pack of a source that has changed since: add "
                            "--overwrite to begin anew",
                            printable(destination.root)));
  }
  return plan;
}

}  // namespace stoker
