// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stoker {

/// One copy that lies at a place.
struct StagedItem {
  std::string node;
  std::string place;
  std::string directory;
  uid_t owner = 0;
  bool own = false;
  std::string path;    // to be opened; empty where it is not complete
  std::string source;  // empty where that is not known
  uint64_t bytes = 0;  // that lie there
  bool complete = false;
  bool keep = true;  // stays until its owner cleans it: not made for a job or a command alone
  int64_t verified_at = 0;               // seconds since 1970; 0: not known
  double age_s = 0;                      // since it was written last
  std::vector<std::string> references;   // "job,1234", "process,…"
  std::optional<double> purged_in_days;  // by the rule of the site, unless somebody touches it
};

/// A copy of another user whose description is broken, or made to disturb.
struct PassedOver {
  std::string node;
  std::string directory;
  uid_t owner = 0;
  std::string why;
};

struct StagedList {
  std::vector<StagedItem> items;
  std::vector<PassedOver> passed_over;
};

/// Copies of this user, and those of others that can be looked into, at the places given; where
/// there are none, at the well-known ones and at those of the site's file.
StagedList list_staged(const std::vector<std::string>& places);

struct CleanOptions {
  std::vector<std::string> places;  // none: this node's own, not what nodes share
  bool all = false;                 // in use or not
  std::optional<double> older_s;    // only what is older
  std::string only;                 // the directory of a copy; empty: all of them
  std::string except;               // the name of a copy that stays
  /// Only what was made for a job or a command, and nobody needs any more.
  bool ended_only = false;
  /// A job that has ended, and with it the need for its copies; with `run`, one command of it.
  std::string job = {}, run = {};
};

struct CleanResult {
  std::vector<StagedItem> removed;
  std::vector<StagedItem> kept;  // of this user: in use, or not old enough
  uint64_t bytes = 0;            // of what was removed
};

/// Removes copies of this user that nobody needs. Within a job, what it needed counts as not needed
/// any more, unless only what is older, or one copy, or what has ended is asked for.
CleanResult clean_staged(const CleanOptions& options);

}  // namespace stoker
