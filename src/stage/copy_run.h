// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "dataset/scan.h"
#include "index/build_index.h"
#include "stage/patience.h"
#include "stage/shard_copy.h"
#include "stage/staged_copy.h"

namespace stoker {

struct CopyRunOptions {
  unsigned jobs = 1;
  bool partial = false;  // shards that do not fit are left out
  Progress* progress = nullptr;
  Notify notify;
};

/// Brings the shards of a dataset into a copy, together with whoever else is at it, and gives it
/// an index when all are there.
class CopyRun {
 public:
  CopyRun(const OpenedDataset& source, const std::vector<ShardToStage>& shards, StagedCopy& copy,
          std::string mark, const CopyRunOptions& options);

  /// Whether a shard is there, whole.
  bool present(size_t shard) const;
  /// Whether another process is bringing it.
  bool on_its_way(size_t shard) const;
  /// `wanted` are numbers of shards. Returns when each is there, or is one of those left out.
  void bring(std::vector<size_t> wanted);
  /// Numbers of the shards that are there, and are not what was copied.
  std::vector<size_t> damaged() const;
  /// Forgets that a shard is there: it is brought again over what is there.
  void forget(size_t shard);
  /// When the shard that was compared longest ago was; seconds since 1970.
  int64_t verified_at() const;
  /// Removes the copy's index where it is not that of the source, or of the shards.
  void check_index();
  /// The copy becomes a dataset of its own. REQUIRES: all shards are there.
  void finish();

  uint64_t copied_bytes() const { return copied_bytes_; }
  bool checksums_made() const { return checksums_made_; }
  const std::vector<Fault>& faults() const { return faults_; }

 private:
  void copy(size_t number, unsigned threads);
  /// The same; where there turns out to be no room for it, it is left out if that is allowed.
  void copy_if_room(size_t shard, unsigned threads);
  /// Samples of a shard whose bytes, as they were copied, are not those of the index.
  std::vector<Fault> bad_samples(const ShardToStage& shard, const std::string& root) const;
  bool index_is_whole(const std::string& directory) const;
  void copy_index(const SafeDirectory& part) const;
  void renew_index(const SafeDirectory& above, const std::string& name) const;
  void make_index(const SafeDirectory& part, const std::string& name);
  std::vector<size_t> differing_shards(const std::string& directory) const;

  const OpenedDataset& source_;
  const std::vector<ShardToStage>& shards_;
  StagedCopy& copy_;
  std::string mark_;
  unsigned jobs_;
  bool partial_;
  std::atomic<bool> full_{false};
  Progress* progress_;
  Patience patience_;
  std::mutex mutex_;
  uint64_t copied_bytes_ = 0;
  bool checksums_made_ = false;
  std::vector<Fault> faults_;
};

}  // namespace stoker
