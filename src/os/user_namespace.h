// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>

namespace stoker {

// In a container that a user started without privileges (podman, Apptainer with --fakeroot,
// unshare -Ur), users have other numbers than outside: each of those who start one is root in it.
// Names at places that several users share are made from the numbers outside.

/// The number outside of this user namespace of the user with this number inside. The same number
/// where that cannot be known. Of namespaces in each other, only the nearest is seen through.
uid_t outer_user(uid_t inside);
/// The reverse; nothing where this namespace has no such user.
std::optional<uid_t> inner_user(uid_t outside);

/// Whether this number stands for all users that this user namespace does not have: two files that
/// have it as their owner need not have the same one. In a container that a user started without
/// privileges, all that belongs to such users, root among them, seems to belong to the overflow
/// user.
bool is_any_unmapped_user(uid_t user);

}  // namespace stoker
