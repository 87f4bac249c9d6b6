// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "os/safe_directory.h"

namespace stoker {

// What lies at a place. Others may write there: everything of ours is in one directory that is ours
// alone, or that a group may read, and is opened step by step without following a link.
//
//   PLACE/stoker-UID/          0700, or 02750 for a group; UID as outside of a container
//     refs/UID:COPY@WHO        who needs which copy, the copies of others of the group included
//     NAME-HASH/               one copy; the hash is that of the source's identity
//       state.json             what it is a copy of
//       data/                  the dataset; has its index when it is complete
//       claims/12 -> MARK      which process copies shard 12
//       parts/MARK,N/          what that process has not finished
//       done/12 -> CRC         shard 12 is there, and that is its checksum
//
// No locks: a claim only saves others the work. Who finds a claim of a dead process takes it over;
// if two do, both write to names of their own, and what they rename into place is the same.

inline constexpr const char* kStateName = "state.json";

/// The permission bits of directories and files of a copy.
struct StageModes {
  uint32_t directory = 0700, file = 0600;
};

/// The name of a user's directory at a place.
std::string directory_of_user(uid_t user);
/// Whose directory at a place has this name; nothing where it is no such name, or that of a user
/// whom this user namespace does not have.
std::optional<uid_t> user_of_directory(std::string_view name);

/// The group that `name` means. Throws Error(usage) where this user is not in it.
gid_t group_named(const std::string& name);

/// The directory of this user at a place; made where `create` says so. Throws Error(permission)
/// where the name is taken by somebody else, or others could change what lies there.
std::optional<SafeDirectory> own_directory(const std::string& place, std::optional<gid_t> group,
                                           bool create);

StageModes modes_for(std::optional<gid_t> group);
/// A directory of ours, made where there is none. What is for a group once stays that: others may
/// be reading it.
SafeDirectory make_for(const SafeDirectory& in, const std::string& name,
                       std::optional<gid_t> group);

/// One copy.
struct StagedCopy {
  /// `top` is the user's directory.
  StagedCopy(const SafeDirectory& top, std::string copy_name, std::optional<gid_t> readers);

  std::string name;
  std::optional<gid_t> group;
  StageModes modes;
  SafeDirectory directory, data, claims, parts, done;

  /// Replaces state.json.
  void write_state(const Json& state, const std::string& mark) const;
  /// Lets the group read all of the dataset: what was staged for this user alone, and what was
  /// written as the umask says.
  void give_to_group() const;
  /// Whether the process behind a work mark may still be at it.
  bool at_work(const std::string& mark) const;
  /// What processes that are no more have left: claims, unfinished files.
  void remove_leftovers() const;
};

/// Tells other processes who does a piece of work, a shard's number or a name, as long as it
/// exists.
class Claim {
 public:
  /// Takes over from a process that is no more, and removes what that has not finished.
  Claim(const StagedCopy& copy, std::string name, const std::string& mark);
  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  /// False where another process is at it.
  bool taken() const { return taken_; }

 private:
  const StagedCopy& copy_;
  std::string name_;
  bool taken_ = false;
};

/// What state.json says; null where there is none or it cannot be parsed, and `problem` says which.
/// It may be somebody else's, and contain anything.
Json read_state(const SafeDirectory& copy, std::string* problem = nullptr);

/// Whether a state is that of a complete copy. It may be somebody else's, and say anything.
bool says_complete(const Json& state);
/// Whether a copy stays until its owner cleans it. Others were made for a job or a command, and are
/// removed when that has ended. True where the state says nothing: earlier versions made it.
bool says_keep(const Json& state);
/// When all of it was compared last, in seconds since 1970.
std::optional<int64_t> said_verified_at(const Json& state);

/// A copy that another member of the group has made, and says is complete.
struct GroupCopy {
  std::string directory;
  uid_t owner = 0;
};
/// Those that their owner alone, and nobody else, may change.
std::vector<GroupCopy> copies_of_group(const std::string& place, const std::string& name,
                                       gid_t group);

/// Names one piece of work of this process: its mark, and a number that no other piece has.
std::string work_mark();
/// Whether the process behind a work mark may still be at it. Of another host that can only be told
/// by the time at which it wrote something in `directory` last: see Heartbeat.
bool may_be_at_work(std::string_view mark, const SafeDirectory& directory, int64_t written_ns);

}  // namespace stoker
