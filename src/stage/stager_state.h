// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "index/build_index.h"
#include "pack/pack.h"
#include "stage/copy_run.h"
#include "stage/inventory.h"
#include "stage/references.h"
#include "stage/stage.h"
#include "stage/staged_copy.h"

namespace stoker {

/// Threads for work that waits for storage, not for cores.
unsigned staging_jobs(unsigned wanted);

/// Seconds since 1970.
int64_t now_s();

/// One dataset on its way. What concerns folders, which are packed on the way, is in
/// stage_folder.cpp.
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
  CleanResult ended;  // copies that were removed first

  bool keeps() const { return options.keep || (options.for_job && own_job().empty()); }
  void tell(const std::string& text) const {
    if (options.notify) options.notify(text);
  }
  void remove_ended(const std::string& name);
  void choose(uint64_t bytes);
  void open_copy(const std::string& name);
  void open_own_copy(const std::string& name, std::optional<gid_t> group);
  /// A copy of another member of the group that is the source's, where there is one.
  bool use_copy_of_group(gid_t group, const std::string& name);
  /// Why a copy of another member is not used; empty where it is.
  std::string problem_of(const GroupCopy& copy_of_member, const std::string& name, gid_t group);
  void aim_at(const std::string& directory);
  StageResult result_of_group() const;
  void check_room(const CopyRun& run);
  void write_state(const StageResult& result);
  void repair(CopyRun& run, StageResult& result);
  StageResult copy_shards();
  void claim_packing(std::optional<Claim>& claim);
  StageResult pack_files();
  PackOptions packing_options() const;
  PackResult pack_here();
  void try_again(PackResult& packed);
  std::string other_user() const;
  void remove_changed(const char* why);
};

}  // namespace stoker
