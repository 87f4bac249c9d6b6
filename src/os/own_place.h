// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

namespace stoker {

/// Why another user could replace the directory `path`, or something in it: "/scratch belongs to
/// eve (2003)". Empty where only this user and root can. Every component of its real path counts:
/// an owner other than this user and root, or permission to write for others, lets somebody rename
/// what is below it. A sticky directory (/tmp) allows that only to owners, so it is no danger to
/// what is ours. Throws where `path` is not there.
std::string why_not_ours(const std::string& path);

/// The same of the directory alone: another owner, or others who may write to it.
std::string why_not_mine(const std::string& path);

/// Whether nobody but this user is in the group of `path`: it has the user's name and no other
/// members, as Debian and Red Hat give one to each user. False where an access control list is
/// attached: the group's bits then speak for its other entries too.
bool is_private_group(gid_t group, const std::string& path);

/// Who else may rename what is in a directory, be it of this user or not: "everybody", "its group",
/// "its owner". Empty where nobody but root may: there, names tell what this user has made.
std::string others_who_rename(const std::string& directory);

/// A directory for what this user will run or believe later.
struct OwnPlace {
  std::string path;     // real and absolute
  std::string instead;  // why it is not the one that was wanted; empty where it is
};

/// Which nodes use a directory by its path. In a job of several nodes it is always all of them.
enum class SeenBy { this_node, all_nodes };

/// The directory stoker-`name` in the current one, made where it is missing, if only this user can
/// replace what is in it; otherwise `name` in own_state_directory().
OwnPlace make_own_place(const std::string& name);
/// Where that would be; nothing is made in the current directory.
OwnPlace find_own_place(const std::string& name, SeenBy seen_by);

/// Makes a directory in a place of find_own_place(), which is made too where it is missing. Throws
/// Error(permission) where others could replace it by now.
void make_in_own_place(const std::string& path);

/// $XDG_STATE_HOME/stoker or ~/.local/state/stoker, made where it is missing. Where others could
/// replace what is in ~/.local/state, and no other node looks there: one in $XDG_RUNTIME_DIR or
/// /tmp. Throws Error(permission) where there is none that is safe.
std::string own_state_directory(SeenBy seen_by);

}  // namespace stoker
