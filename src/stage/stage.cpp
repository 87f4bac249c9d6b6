// SPDX-License-Identifier: Apache-2.0
#include "stage/stage.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
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
#include "stage/companions.h"
#include "stage/copy_run.h"
#include "stage/failures.h"
#include "stage/heartbeat.h"
#include "stage/inventory.h"
#include "stage/references.h"
#include "stage/source_identity.h"
#include "stage/staged_copy.h"
#include "stage/stager_state.h"
#include "stage/unseen_source.h"
#include "stage/verify_copy.h"

namespace stoker {
namespace fs = std::filesystem;

unsigned staging_jobs(unsigned wanted) {
  constexpr unsigned kLeast = 4, kMost = 16;
  return wanted != 0 ? wanted : std::clamp(2 * usable_cores(), kLeast, kMost);
}

int64_t now_s() { return time_of_day_ns() / 1'000'000'000; }

/// Copies of jobs and commands that have ended make room for this one. That it cannot be done is
/// no reason not to stage.
void Stager::State::remove_ended(const std::string& name) {
  CleanOptions clean;
  clean.ended_only = true;
  clean.except = name;
  try {
    for (const StagePlace& place : well_known_places()) clean.places.push_back(place.path);
    if (!options.place.empty()) clean.places.push_back(options.place);
    if (!clean.places.empty()) ended = clean_staged(clean);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
  }
}

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

void Stager::State::open_copy(const std::string& name) {
  std::optional<gid_t> group;
  if (!options.group.empty()) group = group_named(options.group);
  if (group && use_copy_of_group(*group, name)) return;
  open_own_copy(name, group);
}

void Stager::State::open_own_copy(const std::string& name, std::optional<gid_t> group) {
  // Somebody may clean at the same time: what is referred to and still there stays.
  constexpr int kTries = 100;
  for (int i = 0;; ++i) {
    try {
      reference.reset();
      top = own_directory(target.place, group, true);
      copy.emplace(*top, name, group);
      reference.emplace(*top, group, ::geteuid(), name, mark,
                        JobNeed{options.for_job, options.run});
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
  for (const GroupCopy& candidate : copies_of_group(target.place, name, group)) {
    top = own_directory(target.place, group, true);
    reference.emplace(*top, group, candidate.owner, name, mark,
                      JobNeed{options.for_job, options.run});
    const std::string problem = problem_of(candidate, name, group);
    if (problem.empty()) {
      theirs = candidate;
      aim_at(candidate.directory);
      return true;
    }
    tell(fmt::format("not used: {} of {}: {}", printable(candidate.directory),
                     printable(user_in_words(candidate.owner)), problem));
    reference->withdraw();
    reference.reset();
  }
  return false;
}

std::string Stager::State::problem_of(const GroupCopy& copy_of_member, const std::string& name,
                                      gid_t group) {
  // It may have been cleaned before it was referred to.
  const std::vector<GroupCopy> now = copies_of_group(target.place, name, group);
  const bool there = std::any_of(now.begin(), now.end(), [&](const GroupCopy& one) {
    return one.directory == copy_of_member.directory;
  });
  if (!there) return "it has just been removed";
  const std::string data = copy_of_member.directory + "/data";
  if (!target.packed) {
    return difference_from(*source, shards, data, staging_jobs(options.jobs), options.progress);
  }
  // What was packed has its name from the source's path alone, so its contents may be older.
  if (options.verify) return "a folder that somebody else packed cannot be compared";
  try {
    packed_by_them = packed_already(target.source, data, packing_options());
    return packed_by_them ? "" : "it is not of the source as it is now";
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    return error.what();
  } catch (const Json::exception&) {
    return "its index cannot be parsed";
  }
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
void Stager::State::check_room(const CopyRun& run) {
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
    const std::string name = copy_name(state.paths, hash64(whole_path(state.paths)));
    state.remove_ended(name);
    state.choose(0);
    state.open_copy(name);
    state.target.payoff.known_from = "not known before the files are counted";
    return;
  }
  IndexOptions indexing;
  indexing.progress = options.progress;
  state.source = open_dataset(dataset, indexing);
  state.shards = shards_of(*state.source->index);
  for (const ShardToStage& shard : state.shards) state.target.bytes += shard.size;
  const std::string name = copy_name(state.paths, identity_of(state.paths, state.shards));
  state.remove_ended(name);
  state.choose(state.target.bytes);
  state.open_copy(name);
  if (state.theirs) return;
  const CopyRun run(*state.source, state.shards, *state.copy, state.mark, {});
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
  const Json earlier = read_state(copy->directory);
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
            {"verified_at", result.verified_at},
            {"keep", keeps() || (!earlier.is_null() && says_keep(earlier))},
            {"written_at", time_of_day_ns() / 1'000'000'000}};
  const uint64_t copied = result.staged_bytes - std::min(result.staged_bytes, result.reused_bytes);
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
  StageResult result;
  result.target = target;
  result.complete = true;
  if (packed_by_them) {
    result.format = packed_by_them->format;
    result.samples = packed_by_them->samples;
    result.shards = packed_by_them->shards;
    result.bytes = packed_by_them->bytes;
    result.faults = packed_by_them->left_out;
    // There is nothing here to compare it with, short of reading all of the source.
    result.trusts = theirs->owner;
  } else {
    const Manifest& manifest = source->index->manifest();
    result.format = manifest.format;
    result.samples = manifest.samples();
    result.shards = shards.size();
    result.bytes = target.bytes;
    result.verified = result.verified_now = true;  // see problem_of()
    result.verified_at = now_s();
  }
  result.staged_bytes = result.reused_bytes = result.bytes;
  return result;
}

/// Reads what is there already; what is damaged is brought again.
void Stager::State::repair(CopyRun& run, StageResult& result) {
  for (const size_t shard : run.damaged()) {
    run.forget(shard);
    result.repaired.push_back(shards[shard].path);
    if (std::find(wanted.begin(), wanted.end(), shard) == wanted.end()) wanted.push_back(shard);
  }
  run.check_index();
}

StageResult Stager::State::copy_shards() {
  StageResult result;
  const Manifest& manifest = source->index->manifest();
  result.format = manifest.format;
  result.samples = manifest.samples();
  result.shards = shards.size();
  result.bytes = target.bytes;
  CopyRun run(*source, shards, *copy, mark,
              {staging_jobs(options.jobs), options.partial, options.progress, options.notify});
  if (options.verify) repair(run, result);
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
  if (result.complete) copy_companions(paths, shards, *copy, mark, options.notify);
  if (result.complete) run.finish();
  result.checksums_made = result.complete && manifest.depth != Depth::full;
  result.faults = run.faults();
  // Without checksums in the index only the finished copy has been compared.
  result.verified = result.faults.empty() && (result.complete || manifest.depth == Depth::full);
  result.verified_now = result.verified && (options.verify || result.reused_bytes == 0);
  if (result.verified) result.verified_at = run.verified_at();
  return result;
}

StageResult Stager::run() {
  State& state = *state_;
  StageResult result;
  if (state.theirs) {
    result = state.result_of_group();
  } else {
    const auto begin = std::chrono::steady_clock::now();
    try {
      std::optional<Claim> claim;
      if (state.target.packed) state.claim_packing(claim);
      if (read_state(state.copy->directory).is_null()) state.write_state({});
      const SafeDirectory part = state.copy->parts.make(state.mark, state.copy->modes.directory);
      const Heartbeat heartbeat([&part] { part.touch(); });
      result = state.target.packed ? state.pack_files() : state.copy_shards();
      result.seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      state.copy->give_to_group();
      state.write_state(result);
      // Of processes that died while this was at it.
      state.copy->remove_leftovers();
      remove_dead_references(*state.top);
    } catch (const NoRoom& error) {
      throw no_room_for_folder(state.target.place, error.needed(), error.free());
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::interrupted) throw;
      throw explained(error, state.target.place, state.target.packed);
    }
  }
  result.removed_copies = state.ended.removed.size();
  result.removed_bytes = state.ended.bytes;
  result.target = state.target;
  return result;
}

StageResult stage(const std::string& dataset, const StageOptions& options) {
  if (std::optional<StageResult> copy = copy_of_unseen(dataset, options)) return *copy;
  Stager stager(dataset, options);
  return stager.run();
}

}  // namespace stoker
