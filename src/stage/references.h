// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "os/safe_directory.h"
#include "stage/heartbeat.h"
#include "stage/staged_copy.h"

namespace stoker {

// A reference is an empty file whose name says all: it is there at once, or not at all. Each user's
// lie in the directory of their own, also those to the copy of another one of a group: nobody
// writes to what is somebody else's.

/// A process or job that needs a copy.
struct Reference {
  uid_t owner = 0;   // of the copy
  std::string copy;  // its name
  std::string who;   // "job,1234", or "process,MARK"
  std::string run;   // of a job: which `stage … -- COMMAND` of it; empty: the job as a whole
  std::string cluster = {};  // of a job; empty where that is not known
};

/// Whether the job that this process is part of needs a copy: as a whole, or one run of a command.
struct JobNeed {
  bool needs = false;
  std::string run;
};

/// The number of the job that this process is part of; empty outside of one.
std::string own_job();

/// Keeps a copy from being cleaned as long as this process runs and, where `job` says so, the job
/// that it is part of. Gone with the object; the job's stays.
class HeldReference {
 public:
  /// `top` is the directory of this user at the place. What other hosts see of it is as old as
  /// `pause` at most.
  HeldReference(const SafeDirectory& top, std::optional<gid_t> group, uid_t owner,
                const std::string& copy, const std::string& mark, const JobNeed& job,
                std::chrono::milliseconds pause = kHeartbeat);
  ~HeldReference();
  HeldReference(const HeldReference&) = delete;
  HeldReference& operator=(const HeldReference&) = delete;

  /// Whether this object has made it, for its process or for the job. What the job had before is
  /// of somebody who needed the copy earlier.
  bool made(const Reference& reference) const;
  /// Removes what it has made, that of the job included: the copy is not needed after all.
  void withdraw();

 private:
  SafeDirectory directory_;
  std::string name_;
  std::string job_name_;  // empty where the job's was there, or there is no job
  std::optional<Heartbeat> heartbeat_;
};

/// A job no longer needs any copy: as a whole, or one run of a command (`run`). With `all_runs`,
/// none of its runs does either.
void drop_references_of_job(const SafeDirectory& top, const std::string& job,
                            const std::string& run, bool all_runs);

/// Those of processes of this user that are no more.
void remove_dead_references(const SafeDirectory& top);

/// References at a place to copies of `owner` that still count: the owner's, and those of others
/// whose directories are of the group that may read them. Those of this user that do not count any
/// more are removed.
std::vector<Reference> live_references(const SafeDirectory& place, uid_t owner);

}  // namespace stoker
