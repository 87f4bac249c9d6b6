// SPDX-License-Identifier: Apache-2.0
#include "pack/pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/parallel.h"
#include "base/text.h"
#include "base/units.h"
#include "dataset/manifest.h"
#include "dataset/reader.h"
#include "index/segment_builder.h"
#include "os/directory_lock.h"
#include "os/output_file.h"
#include "os/scratch_directory.h"
#include "pack/destination.h"
#include "pack/earlier_pack.h"
#include "pack/plan.h"
#include "pack/shard_job.h"
#include "pack/views.h"
#include "pack/work.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

/// Whether a plan writes the very shards that a complete pack has there.
bool has_same_shards(const Plan& plan, const Destination& destination) {
  for (const PlannedDataset& dataset : plan.datasets) {
    const std::string path =
        destination.dataset(dataset.directory) + "/" + kIndexDirectory + "/" + kManifestName;
    if (!fs::exists(path)) return false;
    const Manifest manifest = Manifest::read(path);
    if (manifest.origin.empty() ||
        parse_json(manifest.origin).at("fingerprint") != plan.fingerprint ||
        manifest.segments.size() != dataset.shards.size()) {
      return false;
    }
    for (size_t i = 0; i < dataset.shards.size(); ++i) {
      const std::string stem = SegmentBuilder::stem(segment_name(dataset.shards[i].name), 0);
      if (!manifest.segments[i].file.starts_with(stem)) return false;
    }
  }
  return true;
}

/// Settles a new plan; only then what it replaces goes. Shards of an earlier pack that tries again
/// what it left out stay where they are the same.
Plan begin_anew(const Source& source, const DatasetPaths& paths, const WriteFormat& write,
                const std::string& name, const Destination& destination,
                const PackOptions& options) {
  refuse_foreign(destination);
  const Detected detected = detect_format(source);
  const bool compressed =
      std::any_of(detected.layout.parts.begin(), detected.layout.parts.end(),
                  [](const Part& part) { return part.compression != Compression::none; });
  if (compressed && options.shuffle) {
    throw Error(ErrorKind::usage, fmt::format("{}: is compressed, or in Fortran order, and can "
                                              "only be read front to back: pack it first "
                                              "without --shuffle, then shuffle the result",
                                              printable(paths.path)));
  }
  const fs::path index = fs::path(destination.root) / kIndexDirectory;
  try {
    make_directories(destination.new_plan);
    Plan plan = make_plan(source, detected, write, name, paths.existing_index().value_or(""),
                          destination.new_plan, options);
    const bool again = !options.overwrite && has_same_shards(plan, destination);
    if (!again && !options.overwrite)
      refuse_to_lose(destination, Index(destination.new_plan + "/source"));
    if (!again) remove_earlier(destination);
    fs::rename(destination.new_plan, destination.plan);
    return plan;
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(destination.new_plan, ignored);
    remove_if_empty(index);
    throw;
  }
}

/// One Reader per thread that writes: each has its own open files, and walks through a
/// compressed source front to back.
class Readers {
 public:
  Readers(std::shared_ptr<const Index> index, ReaderOptions options)
      : index_(std::move(index)), options_(std::move(options)) {}

  std::unique_ptr<Reader> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Reader>(index_, options_);
    std::unique_ptr<Reader> reader = std::move(free_.back());
    free_.pop_back();
    return reader;
  }
  void give(std::unique_ptr<Reader> reader) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(reader));
  }

 private:
  std::shared_ptr<const Index> index_;
  ReaderOptions options_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Reader>> free_;
};

struct Task {
  size_t dataset = 0;
  size_t shard = 0;
  std::optional<SegmentEntry> entry;
};

void check_space(const Destination& destination, const Plan& plan, const std::vector<Task>& tasks) {
  uint64_t needed = 0;
  for (const Task& task : tasks) {
    if (!task.entry) needed += plan.datasets[task.dataset].shards[task.shard].bytes;
  }
  const uint64_t free = free_space(destination.root);
  if (needed <= free) return;
  throw NoRoom(destination.root, needed, free);
}

RowIndexWork row_indexes_for(const std::string& directory, const PackOptions& options,
                             const ThreadShares& shares) {
  RowIndexWork work;
  work.directory = directory + "/" + kIndexDirectory;
  work.roots = {directory};
  work.every = options.row_index.value_or(0);
  work.threads = &shares;
  work.progress = options.progress;
  return work;
}

/// Those that a complete pack lacks: they can be added at any time.
void add_row_indexes(const PackOptions& options, PackResult& result) {
  if (!options.row_index) return;
  const ThreadShares shares(options.jobs != 0 ? options.jobs : usable_cores(), 1);
  if (options.progress != nullptr) {
    options.progress->begin("indexing rows", result.samples, result.payload_bytes);
  }
  result.row_index = {};
  for (const std::string& directory : result.datasets) {
    const RowIndexWork work = row_indexes_for(directory, options, shares);
    const Manifest manifest = Manifest::read(work.directory + "/" + kManifestName);
    for (const SegmentEntry& entry : manifest.segments) {
      make_row_indexes(work, entry, {entry.samples, entry.bytes});
    }
    result.row_index.add(row_index_summary(work.directory, manifest.segments));
  }
}

/// Writes all shards that an earlier run has not finished, and the row indexes of their photos.
void write_shards(const Source& source, const WriteFormat& write, const Destination& destination,
                  const Plan& plan, const PackOptions& options, std::vector<Task>& tasks,
                  PackResult& result) {
  ReaderOptions reading;
  reading.roots = {source.root};
  reading.threads = 1;
  reading.checksum = true;
  reading.fetch_inline = true;
  const auto index = std::make_shared<Index>(destination.plan + "/source");
  const Conversion conversion = conversion_of(*index, write, options);
  // A shard's files are written by their numbers: there must be one for each field.
  if (plan.endings != endings_of(write, conversion.out())) {
    throw Error(ErrorKind::corrupt,
                damaged_plan(destination.plan, "its files are not those of the fields"));
  }
  const ViewReading views = plan_views(*index, options);
  reading.views = views.limits;
  Readers readers(index, reading);
  const bool with_rows = options.row_index && photo_field(conversion.out().fields);
  uint64_t samples = 0;
  uint64_t bytes = 0;
  std::vector<std::set<std::string>> there;
  for (const PlannedDataset& dataset : plan.datasets) {
    there.push_back(names_in(destination.dataset(dataset.directory) + "/" + kIndexDirectory));
  }
  for (Task& task : tasks) {
    const PlannedDataset& dataset = plan.datasets[task.dataset];
    const PlannedShard& shard = dataset.shards[task.shard];
    task.entry = finished_shard(destination.dataset(dataset.directory), there[task.dataset],
                                shard.name, plan.endings);
    if (task.entry) {
      ++result.shards_reused;
    } else {
      samples += shard.last - shard.first;
      bytes += shard.bytes;
    }
  }
  check_space(destination, plan, tasks);
  const auto left = static_cast<size_t>(
      std::count_if(tasks.begin(), tasks.end(), [](const Task& task) { return !task.entry; }));
  const unsigned cores =
      options.jobs != 0 ? std::min(options.jobs, usable_cores()) : usable_cores();
  const size_t busy = std::min<size_t>(left, views.writers) * views.limits.threads;
  const bool idle_cores = 2 * busy <= cores;  // one for each that is busy
  if (options.progress != nullptr) options.progress->begin("packing", samples, bytes);
  ThreadShares shares(cores, tasks.size());
  parallel_for(tasks.size(), views.writers, [&](size_t i) {
    Task& task = tasks[i];
    const PlannedDataset& dataset = plan.datasets[task.dataset];
    const PlannedShard& shard = dataset.shards[task.shard];
    const RowIndexWork rows =
        row_indexes_for(destination.dataset(dataset.directory), options, shares);
    if (task.entry) {
      if (with_rows) make_row_indexes(rows, *task.entry, {});
      return shares.leave();
    }
    std::unique_ptr<Reader> reader = readers.take();
    ShardJob job;
    job.reader = reader.get();
    job.write = &write;
    job.conversion = &conversion;
    job.endings = plan.endings;
    job.directory = destination.dataset(dataset.directory);
    job.name = shard.name;
    job.samples = Plan::order(destination.plan, task.dataset, shard);
    job.own_thread = idle_cores;
    Progress before;
    before.whole = options.progress;
    job.progress = with_rows ? &before : options.progress;
    task.entry = write_shard(job);
    const std::string index = job.directory + "/" + kIndexDirectory + "/";
    for (const std::string& old :
         segments_named(there[task.dataset], SegmentBuilder::stem(segment_name(shard.name), 0))) {
      if (old == task.entry->file) continue;
      fs::remove(index + row_index_path(old));
      fs::remove(index + old);
    }
    readers.give(std::move(reader));
    if (with_rows) make_row_indexes(rows, *task.entry, {before.samples, before.bytes});
    shares.leave();
  });
}

/// Puts the segments of one dataset together.
void write_manifest(const Destination& destination, const Plan& plan, size_t number,
                    const std::string& format, const std::vector<std::string>& classes,
                    const std::vector<Task>& tasks, PackResult& result) {
  const std::string directory = destination.dataset(plan.datasets[number].directory);
  const std::string index = directory + "/" + kIndexDirectory;
  Manifest manifest;
  manifest.format = format;
  manifest.depth = Depth::full;
  for (const Task& task : tasks) {
    if (task.dataset != number) continue;
    manifest.segments.push_back(*task.entry);
    const Segment segment(index + "/" + task.entry->file);
    for (uint32_t i = 0; i < segment.shard_count(); ++i) result.bytes += segment.shard(i).size;
    result.left_out.insert(result.left_out.end(), segment.faults().begin(), segment.faults().end());
    for (const Field& field : segment.fields()) {
      const std::optional<uint32_t> known = manifest.schema.find(field.name);
      if (!known) {
        manifest.schema.fields.push_back(field);
      } else {
        merge_field(manifest.schema.fields[*known], field);
      }
    }
  }
  if (manifest.schema.find(kLabelField)) manifest.schema.classes = classes;
  Json origin{{"options", plan.options},         {"source_format", plan.source_format},
              {"fingerprint", plan.fingerprint}, {"filtered", plan.filtered},
              {"hidden", plan.hidden},           {"unlisted", plan.unlisted}};
  origin["left_out"] = Json::array();
  if (number == 0) {
    for (const Fault& fault : plan.left_out) origin["left_out"].push_back(to_json(fault));
  }
  if (!plan.lossy.empty()) origin["lossy"] = plan.lossy;
  if (!plan.unused.empty()) origin["unused"] = plan.unused;
  manifest.origin = origin.dump();
  const Access access = readers_of(index, manifest).at_most();
  manifest.write(index + "/" + kManifestName, access);
  set_access(index, access);
  result.row_index.add(row_index_summary(index, manifest.segments));
  result.samples += manifest.samples();
  result.shards += manifest.shards();
  result.payload_bytes += manifest.bytes();
  result.datasets.push_back(directory);
}

/// Small files that say to others what the shards of a dataset are.
void write_companions(const Destination& destination, const Plan& plan, size_t number,
                      const WriteFormat& write, const PackOptions& options) {
  if (write.companions == nullptr) return;
  const PlannedDataset& dataset = plan.datasets[number];
  std::vector<std::string> files;
  for (const PlannedShard& shard : dataset.shards) {
    for (const std::string& ending : plan.endings) files.push_back(shard.name + ending);
  }
  const Index source(destination.plan + "/source");
  const Conversion conversion = conversion_of(source, write, options);
  for (const Companion& file : write.companions(conversion.out(), files)) {
    write_file(destination.dataset(dataset.directory) + "/" + file.name, as_bytes(file.contents));
  }
}

/// The result is complete: what only served to make it goes.
void finish(const Destination& destination, const PackOptions& options) {
  remove_plan(destination);
  if (!options.split.empty()) remove_if_empty(fs::path(destination.root) / kIndexDirectory);
  sync_directory(destination.root);
}

PackResult begin_result(const Work& work, const Plan& plan) {
  PackResult result;
  result.format = work.format->name;
  result.source_format = plan.source_format;
  result.filtered = plan.filtered;
  result.hidden = plan.hidden;
  result.unlisted = plan.unlisted;
  result.unused = plan.unused;
  result.left_out = plan.left_out;
  result.lossy = plan.lossy;
  return result;
}

std::vector<Task> tasks_of(const Plan& plan) {
  std::vector<Task> tasks;
  for (size_t d = 0; d < plan.datasets.size(); ++d) {
    for (size_t s = 0; s < plan.datasets[d].shards.size(); ++s) tasks.push_back({d, s, {}});
  }
  return tasks;
}

/// Nothing is written through a link that lies in the destination.
void refuse_links_in(const Destination& destination, const Plan& plan) {
  refuse_links(destination, {kIndexDirectory, "pack"});
  for (const PlannedDataset& dataset : plan.datasets) {
    refuse_links(destination, {dataset.directory, kIndexDirectory});
  }
}

/// Writes the shards of one part. Whoever made the plan has seen the source: what has changed since
/// is noticed when it is read.
PackResult pack_part(const Work& work, const PackOptions& options) {
  const std::optional<Plan> plan = Plan::read(work.destination.plan);
  if (!plan || plan->options != work.wanted) {
    throw Error(ErrorKind::usage,
                fmt::format("{}: has no plan with these options: run the same command with --plan "
                            "instead of --part first",
                            printable(work.destination.root)));
  }
  refuse_links_in(work.destination, *plan);
  PackResult result = begin_result(work, *plan);
  result.unfinished = true;
  std::vector<Task> mine;
  const std::vector<Task> all = tasks_of(*plan);
  for (size_t i = options.part->number - 1; i < all.size(); i += options.part->of) {
    mine.push_back(all[i]);
  }
  write_shards(work.source, *work.format->write, work.destination, *plan, options, mine, result);
  for (const Task& task : mine) {
    const PlannedShard& shard = plan->datasets[task.dataset].shards[task.shard];
    result.samples += task.entry->samples;
    result.bytes += shard.bytes;
    const std::string directory =
        work.destination.dataset(plan->datasets[task.dataset].directory) + "/" + kIndexDirectory;
    result.row_index.add(row_index_summary(directory, {&*task.entry, 1}));
  }
  result.shards = mine.size();
  // For whoever wants to know which part is missing.
  write_file(fmt::format("{}/part-{}-of-{}", work.destination.plan, options.part->number,
                         options.part->of),
             {});
  return result;
}

PackResult pack_all(const Work& work, const PackOptions& options) {
  const Destination& destination = work.destination;
  const NewDirectory created(destination.root);
  const DirectoryLock lock(destination.root);
  refuse_links(destination, {kIndexDirectory, "pack"});
  for (const auto& [split, share] : options.split) {
    refuse_links(destination, {split, kIndexDirectory});
  }
  fs::remove_all(destination.new_plan);  // planning was interrupted
  fs::remove_all(destination.old_plan);
  std::optional<Plan> plan;
  uint64_t retried = 0;
  if (!options.overwrite && !fs::exists(destination.plan)) {
    auto done = complete_already(destination, work.source, options, work.wanted);
    retried = done && options.retry_transient ? done->retried : 0;
    if (done && retried == 0) {
      finish(destination, options);  // where the earlier run was killed while doing that
      if (!options.plan_only) add_row_indexes(options, *done);
      return *done;
    }
  }
  if (options.overwrite) {
    plan = plan_to_overwrite(destination, work.source, options, work.wanted);
  } else if (retried == 0) {
    plan = plan_to_continue(destination, work.source, options, work.wanted);
  }
  const WriteFormat& write = *work.format->write;
  if (!plan) plan = begin_anew(work.source, work.paths, write, work.name, destination, options);
  PackResult result = begin_result(work, *plan);
  refuse_links_in(destination, *plan);
  result.retried = retried;
  for (const PlannedDataset& dataset : plan->datasets) {
    make_directories(destination.dataset(dataset.directory) + "/" + kIndexDirectory);
  }
  std::vector<Task> tasks = tasks_of(*plan);
  if (options.plan_only) {
    result.unfinished = true;
    result.shards = tasks.size();
    return result;
  }
  write_shards(work.source, write, destination, *plan, options, tasks, result);
  const std::vector<std::string> classes =
      Manifest::read(destination.plan + "/source/" + kManifestName).schema.classes;
  for (size_t d = 0; d < plan->datasets.size(); ++d) {
    write_companions(destination, *plan, d, write, options);
    write_manifest(destination, *plan, d, result.format, classes, tasks, result);
  }
  finish(destination, options);
  return result;
}

}  // namespace

NoRoom::NoRoom(const std::string& destination, uint64_t needed, uint64_t free)
    : Error(ErrorKind::io,
            fmt::format("{}: {} needed, {} free: make room and run again", printable(destination),
                        format_bytes(needed), format_bytes(free)),
            ENOSPC),
      needed_(needed),
      free_(free) {}

void count_packed(const std::string& destination_path, Progress& progress) {
  const Destination destination(destination_path);
  std::optional<Plan> plan;
  try {
    plan = Plan::read(destination.plan);
  } catch (const Error&) {
    return;  // it is being made, or on its way out
  }
  if (!plan) return;
  uint64_t samples = 0, all = 0;
  for (const PlannedDataset& dataset : plan->datasets) {
    const std::set<std::string> there = names_in(destination.dataset(dataset.directory));
    for (const PlannedShard& shard : dataset.shards) {
      all += shard.last - shard.first;
      if (there.contains(shard.name + plan->endings.back())) samples += shard.last - shard.first;
    }
  }
  if (progress.total_samples != all) progress.begin("packing", all, 0);
  progress.samples = samples;
}

std::optional<PackResult> packed_already(const std::string& source_path,
                                         const std::string& destination_path,
                                         const PackOptions& options) {
  const Work work = work_of(source_path, destination_path, options);
  try {
    auto done = complete_already(work.destination, work.source, options, work.wanted);
    const bool try_again = done && done->retried > 0 && options.retry_transient;
    return try_again ? std::nullopt : std::move(done);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    return std::nullopt;  // of another source, of other options, damaged, or not for us to read
  }
}

PackResult pack(const std::string& source_path, const std::string& destination_path,
                const PackOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  remove_abandoned_scratch();
  const Work work = work_of(source_path, destination_path, options);
  refuse_untrusted(work.destination);
  PackResult result = options.part ? pack_part(work, options) : pack_all(work, options);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace stoker
