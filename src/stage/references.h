// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "os/safe_directory.h"
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
};

/// Keeps a copy from being cleaned as long as this process runs and, `for_job`, the job that it is
/// part of. Gone with the object; the job's stays.
class HeldReference {
 public:
  /// `top` is the directory of this user at the place.
  HeldReference(const SafeDirectory& top, const StageModes& modes, uid_t owner,
                const std::string& copy, const std::string& mark, bool for_job);
  ~HeldReference();
  HeldReference(const HeldReference&) = delete;
  HeldReference& operator=(const HeldReference&) = delete;

 private:
  SafeDirectory directory_;
  std::string name_;
};

/// The job that this process is part of has no need for any copy any more.
void drop_references_of_job(const SafeDirectory& top);

/// Those of processes of this user that are no more.
void remove_dead_references(const SafeDirectory& top);

/// References at a place to copies of `owner` that still count, by whomever they are. Those of this
/// user that do not count any more are removed.
std::vector<Reference> live_references(const SafeDirectory& place, uid_t owner);

}  // namespace stoker
