// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace stoker {

/// How much of a file lies in memory.
struct CachedBytes {
  uint64_t cached = 0;
  uint64_t all = 0;
};

/// How many bytes of a part of an open file lie in memory, by whole pages. Of a file that this user
/// may neither write to nor owns the kernel says that all do.
uint64_t cached_bytes(int descriptor, uint64_t offset, uint64_t length);

/// Asks the kernel to forget what it has of a file, so that the next read comes from the disk;
/// needs no privilege. Returns what it has kept all the same (all of it, where the file lies in
/// memory as on tmpfs). A file that cannot be opened counts as nothing.
CachedBytes drop_from_page_cache(const std::string& path);
/// The same for an open file.
CachedBytes drop_from_page_cache(int descriptor);

/// Asks the kernel to bring a file into memory, and does not wait for it. Where it cannot be
/// opened nothing happens.
void bring_into_page_cache(const std::string& path);

}  // namespace stoker
