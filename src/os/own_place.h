// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

namespace stoker {

/// Whether this number stands for all users that this user namespace does not have: two files that
/// have it as their owner need not have the same one. In a container that a user started without
/// privileges, all that belongs to such users, root among them, seems to belong to the overflow
/// user.
bool is_any_unmapped_user(uid_t user);

/// Why another user could replace the directory `path`, or something in it: "/scratch belongs to
/// eve (2003)". Empty where only this user and root can. Every component of its real path counts:
/// an owner other than this user and root, or permission to write for others, lets somebody rename
/// what is below it. A sticky directory (/tmp) allows that only to owners, so it is no danger to
/// what is ours. Throws where `path` is not there.
std::string why_not_ours(const std::string& path);

/// The same of the directory alone: another owner, or others who may write to it.
std::string why_not_mine(const std::string& path);

/// A directory for what this user will run or believe later.
struct OwnPlace {
  std::string path;     // real and absolute
  std::string instead;  // why it is not the one that was wanted; empty where it is
};

/// The directory stoker-`name` in the current one, made where it is missing, if only this user can
/// replace what is in it; otherwise `name` in own_state_directory().
OwnPlace make_own_place(const std::string& name);
/// Where that would be; nothing is made in the current directory.
OwnPlace find_own_place(const std::string& name);

/// Makes a directory in a place of find_own_place(), which is made too where it is missing. Throws
/// Error(permission) where others could replace it by now.
void make_in_own_place(const std::string& path);

/// $XDG_STATE_HOME/stoker or ~/.local/state/stoker, made where it is missing. Throws
/// Error(permission) where others could replace what is in it.
std::string own_state_directory();

}  // namespace stoker
