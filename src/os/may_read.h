// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

namespace stoker {

/// Whether that user may read the file by its path, which is real and absolute: it lets them, and
/// so does every directory above it. Groups are those that the system lists for the user. Where an
/// access control list is attached, only what everybody may do counts.
bool may_read(uid_t user, const std::string& path);

}  // namespace stoker
