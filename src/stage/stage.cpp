// SPDX-License-Identifier: Apache-2.0
#include "stage/stage.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/parallel.h"
#include "base/text.h"
#include "base/units.h"
#include "dataset/splits.h"
#include "index/build_index.h"
#include "os/node.h"
#include "os/scratch_directory.h"
#include "pack/pack.h"
#include "probe/probe.h"
#include "stage/choose_place.h"
#include "stage/copy_run.h"
#include "stage/failures.h"
#include "stage/heartbeat.h"
#include "stage/references.h"
#include "stage/source_identity.h"
#include "stage/staged_copy.h"
#include "stage/unseen_source.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kLook{100};
// Of a folder's files: enough shards for several threads, each large.
constexpr uint64_t kPackedShard = 256'000'000;

/// Copying waits for storage, not for cores.
unsigned jobs_for(unsigned wanted) {
  constexpr unsigned kLeast = 4, kMost = 16;
  return wanted != 0 ? wanted : std::clamp(2 * usable_cores(), kLeast, kMost);
}

}  // namespace

struct Stager::State {
  StageOptions options;
  StageTarget target;
  DatasetPaths paths;
  std::optional<OpenedDataset> source;  // nothing where it is packed
  std::vector<ShardToStage> shards;
  std::vector<size_t> wanted;
  std::string mark;
  pid_t process = ::getpid();
  std::optional<SafeDirectory> top;
  std::optional<StagedCopy> copy;
  std::optional<HeldReference> reference;
  std::optional<GroupCopy> theirs;
  std::optional<PackResult> packed_by_them;

  void choose(uint64_t bytes);
  void open_copy(uint64_t identity);
  /// The copy of another one of the group, where there is a complete one.
  bool use_copy_of_group(gid_t group, const std::string& name);
  void aim_at(const std::string& directory);
  StageResult result_of_group() const;
  void check_room(CopyRun& run);
  void write_state(const StageResult& result);
  StageResult copy_shards();
  StageResult pack_files();
  PackOptions packing_options() const;
  PackResult pack_here();
  void remove_changed();
};

void Stager::State::choose(uint64_t bytes) {
  if (!options.place.empty()) {
    std::error_code failed;
    const fs::path real = fs::canonical(options.place, failed);
    if (failed) throw system_error(options.place, "cannot open", failed.value());
    target.place = real.string();
    return;
  }
  struct stat status {};
  const uint64_t device = ::stat(paths.root.c_str(), &status) == 0 ? uint64_t{status.st_dev} : 0;
  ChosenPlace chosen = choose_place(well_known_places(), bytes, device, options.partial);
  target.place = fs::canonical(chosen.path).string();
  target.why = std::move(chosen.why);
}

void Stager::State::open_copy(uint64_t identity) {
  std::optional<gid_t> group;
  if (!options.group.empty()) group = group_named(options.group);
  const std::string name = copy_name(paths, identity);
  if (group && use_copy_of_group(*group, name)) return;
  // Somebody may clean at the same time: what is referred to and still there stays.
  constexpr int kTries = 100;
  for (int i = 0;; ++i) {
    try {
      reference.reset();
      top = own_directory(target.place, group, true);
      copy.emplace(*top, name, group);
      reference.emplace(*top, group, ::geteuid(), name, mark, options.for_job);
      const std::optional<FileInfo> there = top->info(name), own = copy->directory.info(".");
      if (there && own && there->inode == own->inode) break;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::not_found || i >= kTries) throw;
    }
  }
  copy->remove_leftovers();
  aim_at(copy->directory.path());
}

bool Stager::State::use_copy_of_group(gid_t group, const std::string& name) {
  theirs = copy_of_group(target.place, name, group);
  if (!theirs) return false;
  top = own_directory(target.place, group, true);
  reference.emplace(*top, group, theirs->owner, name, mark, options.for_job);
  // It may have been cleaned before it was referred to. What was packed has its name from the
  // source's path alone, so its contents may be those of yesterday.
  theirs = copy_of_group(target.place, name, group);
  if (theirs && target.packed) {
    packed_by_them = packed_already(target.source, theirs->directory + "/data", packing_options());
    if (!packed_by_them) theirs.reset();
  }
  if (!theirs) return false;
  aim_at(theirs->directory);
  return true;
}

PackOptions Stager::State::packing_options() const {
  PackOptions packing;
  packing.shard_size = kPackedShard;
  packing.jobs = options.jobs;
  packing.progress = options.progress;
  packing.row_index = std::nullopt;  // takes longer than the copy that is waited for
  return packing;
}

void Stager::State::aim_at(const std::string& directory) {
  target.data = directory + "/data";
  target.arrivals = directory + "/done";
  target.path = target.data;
  if (!target.packed && !paths.file.empty()) target.path += "/" + paths.file;
  // Of several splits the copy has one, or all.
  const std::string split = paths.split == kAllSplits ? paths.split : "";
  const std::string part = part_name(split, paths.inner);
  if (!target.packed && !part.empty()) target.path += "::" + part;
}

/// Settles which shards are brought, by the room that there is.
void Stager::State::check_room(CopyRun& run) {
  uint64_t needed = 0;
  std::vector<size_t> missing;
  wanted.clear();
  for (size_t i = 0; i < shards.size(); ++i) {
    if (run.present(i)) continue;
    // Who brings a shard has room for it, and a part of it lies there already.
    if (run.on_its_way(i)) {
      wanted.push_back(i);
      continue;
    }
    missing.push_back(i);
    needed += shards[i].size;
  }
  target.payoff =
      estimate_payoff(paths.root, target.place, needed, target.bytes, profile_directory());
  const uint64_t room = look_at_place(target.place).room;
  if (needed > room && !options.partial) throw no_room(target.place, needed, room);
  // Something is left for the index and for others.
  constexpr uint64_t kLeftPart = 50, kBlock = 4096, kLeast = 4 * kBlock;
  uint64_t left = needed > room ? room - std::min(room, room / kLeftPart + kLeast) : ~uint64_t{0};
  for (const size_t i : missing) {
    if (shards[i].size > left) continue;
    left -= std::min(left, round_up(shards[i].size, kBlock));
    wanted.push_back(i);
  }
}

Stager::Stager(const std::string& dataset, const StageOptions& options)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  remove_abandoned_scratch();
  state.options = options;
  state.mark = work_mark();
  state.target.source = dataset;
  state.paths = DatasetPaths::of(dataset);
  state.paths.refuse_unfinished();
  state.target.packed = needs_packing(state.paths);
  if (state.target.packed) {
    state.choose(0);
    state.open_copy(hash64(whole_path(state.paths)));
    state.target.payoff.known_from = "not known before the files are counted";
    return;
  }
  IndexOptions indexing;
  indexing.progress = options.progress;
  state.source = open_dataset(dataset, indexing);
  state.shards = shards_of(*state.source->index);
  for (const ShardToStage& shard : state.shards) state.target.bytes += shard.size;
  state.choose(state.target.bytes);
  state.open_copy(identity_of(state.paths, state.shards));
  if (state.theirs) return;
  CopyRun run(*state.source, state.shards, *state.copy, state.mark, 1, options.partial, nullptr);
  state.check_room(run);
}

Stager::~Stager() {
  if (state_->process != ::getpid()) {
    // A fork of the process that stages: what lies there is that one's.
    (void)state_.release();  // NOLINT(bugprone-unused-return-value)
    return;
  }
  if (!state_->copy) return;
  try {
    state_->copy->parts.remove_tree(state_->mark);
  } catch (const Error&) {  // whoever comes next removes it
  }
}

const StageTarget& Stager::target() const { return state_->target; }

void Stager::State::write_state(const StageResult& result) {
  Json json{{"version", 1},
            {"source", name_to_json(whole_path(paths))},
            {"format", result.format},
            {"packed", target.packed},
            {"opens", name_to_json(target.path.substr(target.data.size()))},
            {"samples", result.samples},
            {"shards", result.shards},
            {"bytes", result.bytes},
            {"host", host_name()},
            {"complete", result.complete},
            {"verified", result.verified},
            {"written_at", time_of_day_ns() / 1'000'000'000}};
  const uint64_t copied = result.staged_bytes - std::min(result.staged_bytes, result.reused_bytes);
  const Json earlier = read_state(copy->directory);
  if (copied > 0 && result.seconds > 0) {
    json["measured"] = {{"copied_bytes", copied}, {"seconds", result.seconds}};
    const std::optional<Estimate>& expected = target.payoff.copy_s;
    json["measured"]["expected_s"] = expected ? Json(expected->value) : Json();
  } else if (earlier.contains("measured")) {
    json["measured"] = earlier["measured"];
  }
  copy->write_state(json, mark);
}

StageResult Stager::State::result_of_group() const {
  const Index index(target.packed ? target.data + "/" + kIndexDirectory
                                  : target.data + "/" + paths.index_in_copy());
  StageResult result;
  const std::vector<ShardToStage> there = shards_of(index);
  result.format = index.manifest().format;
  result.samples = index.size();
  result.shards = there.size();
  for (const ShardToStage& shard : there) {
    result.bytes += shard.size;
    const auto info = real_file_system().info(target.data + "/" + shard.path, false);
    if (!info || info->size != shard.size) ++result.missing_shards;
  }
  // They verified it; a full index is there to do it again.
  result.staged_bytes = result.reused_bytes = result.bytes;
  result.complete = result.missing_shards == 0;
  if (packed_by_them) result.faults = packed_by_them->left_out;
  result.verified = result.complete && result.faults.empty();
  result.target = target;
  return result;
}

StageResult Stager::State::copy_shards() {
  StageResult result;
  const Manifest& manifest = source->index->manifest();
  result.format = manifest.format;
  result.samples = manifest.samples();
  result.shards = shards.size();
  result.bytes = target.bytes;
  if (read_state(copy->directory).is_null()) write_state(result);
  CopyRun run(*source, shards, *copy, mark, jobs_for(options.jobs), options.partial,
              options.progress);
  if (options.progress != nullptr) {
    uint64_t bytes = 0;
    for (const size_t i : wanted) bytes += shards[i].size;
    options.progress->begin("staging", 0, bytes);
  }
  run.bring(wanted);
  for (size_t i = 0; i < shards.size(); ++i) {
    if (run.present(i)) {
      result.staged_bytes += shards[i].size;
    } else {
      ++result.missing_shards;
    }
  }
  result.reused_bytes = result.staged_bytes - std::min(result.staged_bytes, run.copied_bytes());
  result.complete = result.missing_shards == 0;
  if (result.complete) run.finish();
  result.checksums_made = result.complete && manifest.depth != Depth::full;
  result.faults = run.faults();
  // Without checksums in the index only the finished copy has been compared.
  result.verified = result.faults.empty() && (result.complete || manifest.depth == Depth::full);
  return result;
}

/// What was packed of other contents goes, unless somebody still reads it.
void Stager::State::remove_changed() {
  for (const Reference& other : live_references(SafeDirectory(target.place), ::geteuid())) {
    if (other.copy != copy->name || reference->made(other)) continue;
    throw Error(
        ErrorKind::io,
        fmt::format("{}: the source has changed since it was staged, and the copy is in use "
                    "({}): run again when that has ended, or choose another place",
                    printable(target.path), printable(other.who)));
  }
  for (const DirectoryEntry& entry : copy->data.list()) copy->data.remove_tree(entry.name);
}

PackResult Stager::State::pack_here() {
  const PackOptions packing = packing_options();
  try {
    return pack(target.source, target.data, packing);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage && error.kind() != ErrorKind::corrupt) throw;
  }
  remove_changed();
  return pack(target.source, target.data, packing);
}

StageResult Stager::State::pack_files() {
  // One process does it: a second one waits, and then finds it done.
  std::optional<Claim> claim;
  for (;; std::this_thread::sleep_for(kLook)) {
    if (options.progress != nullptr) options.progress->check_stop();
    claim.emplace(*copy, "pack", mark);
    if (claim->taken()) break;
  }
  const PackResult packed = pack_here();
  StageResult result;
  result.format = packed.format;
  result.samples = packed.samples;
  result.shards = packed.shards;
  result.bytes = result.staged_bytes = target.bytes = packed.bytes;
  result.reused_bytes = packed.already_complete ? packed.bytes : 0;
  result.faults = packed.left_out;
  result.complete = true;
  result.verified = packed.left_out.empty();
  result.checksums_made = true;
  return result;
}

StageResult Stager::run() {
  State& state = *state_;
  if (state.theirs) return state.result_of_group();
  const auto begin = std::chrono::steady_clock::now();
  try {
    const SafeDirectory part = state.copy->parts.make(state.mark, state.copy->modes.directory);
    const Heartbeat heartbeat([&part] { part.touch(); });
    StageResult result = state.target.packed ? state.pack_files() : state.copy_shards();
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    state.copy->give_to_group();
    state.write_state(result);
    // Of whoever died while this was at it.
    state.copy->remove_leftovers();
    remove_dead_references(*state.top);
    result.target = state.target;
    return result;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    throw explained(error, state.target.place);
  }
}

StageResult stage(const std::string& dataset, const StageOptions& options) {
  if (std::optional<StageResult> copy = copy_of_unseen(dataset, options)) return *copy;
  Stager stager(dataset, options);
  return stager.run();
}

}  // namespace stoker
