// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace stoker {

/// How many files this process may have open at the moment.
uint64_t open_file_limit();

/// Raises the limit as far as the system lets this user, for as long as the object exists: programs
/// that are started later must not inherit it, for select() fails above 1,024.
class MoreOpenFiles {
 public:
  MoreOpenFiles();
  ~MoreOpenFiles();
  MoreOpenFiles(const MoreOpenFiles&) = delete;
  MoreOpenFiles& operator=(const MoreOpenFiles&) = delete;

 private:
  struct rlimit before_ {};
  bool raised_ = false;
};

}  // namespace stoker
