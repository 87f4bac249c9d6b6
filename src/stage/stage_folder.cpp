// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "os/file_system.h"
#include "stage/patience.h"
#include "stage/stager_state.h"
#include "stage/verify_copy.h"

namespace stoker {
namespace {

constexpr std::chrono::milliseconds kLook{100};
// Of a folder's files: enough shards for several threads, each large.
constexpr uint64_t kPackedShard = 256'000'000;

}  // namespace

PackOptions Stager::State::packing_options() const {
  PackOptions packing;
  packing.shard_size = kPackedShard;
  packing.jobs = options.jobs;
  packing.progress = options.progress;
  packing.row_index = std::nullopt;  // takes longer than the copy that is waited for
  packing.retry_transient = false;   // see try_again(): others may read the copy
  return packing;
}

/// Another process or job that needs the copy; empty where there is none.
std::string Stager::State::other_user() const {
  for (const Reference& other : live_references(SafeDirectory(target.place), ::geteuid())) {
    if (other.copy == copy->name && !reference->made(other)) return printable(other.who);
  }
  return "";
}

/// What was packed of other contents goes, unless somebody still reads it.
void Stager::State::remove_changed(const char* why) {
  if (const std::string other = other_user(); !other.empty()) {
    throw Error(ErrorKind::io,
                fmt::format("{}: {}, and the copy is in use ({}): run again when that has ended, "
                            "or choose another place",
                            printable(target.path), why, other));
  }
  for (const DirectoryEntry& entry : copy->data.list()) copy->data.remove_tree(entry.name);
}

PackResult Stager::State::pack_here() {
  const PackOptions packing = packing_options();
  try {
    return pack(target.source, target.data, packing);
  } catch (const NoRoom&) {
    throw;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage && error.kind() != ErrorKind::corrupt) throw;
  }
  remove_changed("the source has changed since it was staged");
  return pack(target.source, target.data, packing);
}

/// Packs again where samples were left out because the system could not read them at that time.
void Stager::State::try_again(PackResult& packed) {
  const uint64_t count = count_transient(packed.left_out);
  if (!packed.already_complete || count == 0) return;
  const std::string other = other_user();
  tell(fmt::format(
      "{} left out when packed (I/O error); {}", count,
      other.empty() ? "trying them again" : "not tried again: the copy is in use (" + other + ")"));
  if (!other.empty()) return;
  remove_changed("samples were left out when it was packed");
  packed = pack(target.source, target.data, packing_options());
}

/// One process packs: a second one waits, and then finds it done. Where the first is stopped, this
/// one makes a copy of its own: two cannot write the same shards.
void Stager::State::claim_packing(std::optional<Claim>& claim) {
  const std::string first = copy->name;
  for (int number = 2;; ++number) {
    copy->parts.make(mark, copy->modes.directory);
    Patience patience(*copy, options.notify);
    for (;; std::this_thread::sleep_for(kLook)) {
      if (options.progress != nullptr) options.progress->check_stop();
      claim.emplace(*copy, "pack", mark);
      if (claim->taken()) return;
      if (patience.is_over("pack")) break;
    }
    claim.reset();
    copy->parts.remove_tree(mark);
    open_own_copy(fmt::format("{}.{}", first, number), copy->group);
  }
}

StageResult Stager::State::pack_files() {
  PackResult packed = pack_here();
  try_again(packed);
  StageResult result;
  if (options.verify && packed.already_complete) {
    result.repaired = damaged_shards(target.data, staging_jobs(options.jobs), options.progress);
    result.verified_now = true;
    if (!result.repaired.empty()) {
      remove_changed("it is damaged");
      packed = pack(target.source, target.data, packing_options());
    }
  }
  result.format = packed.format;
  result.samples = packed.samples;
  result.shards = packed.shards;
  result.bytes = result.staged_bytes = target.bytes = packed.bytes;
  result.reused_bytes = packed.already_complete ? packed.bytes : 0;
  result.faults = packed.left_out;
  result.complete = true;
  result.verified = packed.left_out.empty();
  result.verified_now = result.verified && (result.verified_now || !packed.already_complete);
  result.verified_at = now_s();
  if (!result.verified_now) {
    const std::string manifest = target.data + "/" + kIndexDirectory + "/" + kManifestName;
    const std::optional<FileInfo> info = real_file_system().info(manifest, false);
    const int64_t packed_at = info ? info->modified_ns / 1'000'000'000 : 0;
    result.verified_at = said_verified_at(read_state(copy->directory)).value_or(packed_at);
  }
  result.checksums_made = true;
  return result;
}

}  // namespace stoker
