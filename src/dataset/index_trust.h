// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace stoker {

// An index says what the bytes of a dataset mean. So it counts only where the person who made it
// could have changed the data as well, or is this user or root. SECURITY.md says the same.

enum class IndexUse { read, write };

/// Whether the index directory `directory`, below `root`, is one to read from or to write to; also
/// where it, or a directory above it, does not exist yet. Its owner has to be this user, root or
/// the owner of the directory that it is in; others only where that directory lets them replace
/// what is in it. Links are written through only where they are this user's own or root's.
bool is_trusted_index(const std::string& root, const std::string& directory, IndexUse use);

/// The same for the user's cache: what is there is this user's own, or root's.
bool is_own_cache(const std::string& directory);
/// Makes the directory of all of stoker's cache, for this user alone, where it does not exist.
/// Throws Error(permission) where somebody else has made it.
void make_own_cache(const std::string& directory);

}  // namespace stoker
