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

/// Whether this user namespace has a user with this number inside.
bool has_user(uid_t inside);

}  // namespace stoker
