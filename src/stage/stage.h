// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "dataset/scan.h"
#include "stage/patience.h"
#include "stage/payoff.h"

namespace stoker {

struct StageOptions {
  std::string place;     // a directory; empty: the largest fast one with room
  bool partial = false;  // of shards, what fits; the rest is read from the source
  std::string group;     // whose members may read the copy; empty: this user alone
  bool for_job = true;   // the job that this is part of needs it to its end, not this process alone
  std::string run;       // with for_job: this run of a command needs it, not the job as a whole
  bool keep = false;     // stays until it is cleaned, also after the job or the command
  bool verify = false;   // what is there already is read and compared, and copied again if damaged
  unsigned jobs = 0;     // 0: enough to keep storage busy
  Progress* progress = nullptr;
  Notify notify;  // told that others are waited for, and what is passed over
};

/// Where a dataset is staged, known before anything is copied.
struct StageTarget {
  std::string source;  // as it was named
  std::string place;
  std::string why;   // it was chosen; empty where it was given
  std::string path;  // the copy as a dataset: to be opened once it is complete
  std::string data;  // what paths of its shards are relative to: a root for readers of the source
  /// Its time of change moves when a shard has arrived.
  std::string arrivals;
  bool packed = false;  // small files become a few shards: other ones than the source's
  uint64_t bytes = 0;   // of the shards; 0 where that is only known once they are packed
  Payoff payoff;
};

struct StageResult {
  StageTarget target;
  std::string format;
  uint64_t samples = 0, shards = 0, bytes = 0;  // of the dataset
  uint64_t staged_bytes = 0;                    // that lie there now
  uint64_t reused_bytes = 0;    // of them: were there, or came from others meanwhile
  uint64_t missing_shards = 0;  // did not fit, or are damaged in the source
  bool complete = false;
  /// Every sample that lies there was compared with its checksum; where the source's index had
  /// none, with one that was made from the source's bytes while they were in memory.
  bool verified = false;
  bool verified_now = false;  // all of that in this run; otherwise some of it when it was staged
  int64_t verified_at = 0;    // seconds since 1970, of what was compared longest ago; 0: not known
  std::vector<std::string> repaired;  // shards that were damaged at the place, and copied again
  /// Another member of the group packed it, and nothing here can tell whether it did so correctly.
  std::optional<uid_t> trusts;
  uint64_t removed_copies = 0, removed_bytes = 0;  // of jobs and commands that had ended
  bool checksums_made = false;                     // the source's index had none: the copy's has
  /// Samples whose bytes in the source are not those that were indexed; their shards are left out.
  std::vector<Fault> faults;
  double seconds = 0;
};

/// One dataset on its way to a place. Several processes may do this at once: they share the work
/// and the copy. May be killed at any moment; whoever comes next goes on.
class Stager {
 public:
  /// Chooses the place and makes the directories. Throws Error(io) where there is no room.
  Stager(const std::string& dataset, const StageOptions& options);
  ~Stager();
  Stager(const Stager&) = delete;
  Stager& operator=(const Stager&) = delete;

  const StageTarget& target() const;
  /// Copies what is missing.
  StageResult run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

StageResult stage(const std::string& dataset, const StageOptions& options);

}  // namespace stoker
