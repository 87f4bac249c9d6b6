// SPDX-License-Identifier: Apache-2.0
#include "os/readers.h"

#include <sys/stat.h>

namespace stoker {

void Readers::add(const FileInfo& file) {
  bits_ &= file.mode;
  several_groups_ |= group_ && *group_ != file.group;
  group_ = file.group;
}

void Readers::add(const std::string& path) {
  if (const auto info = real_file_system().info(path, true)) add(*info);
}

Access Readers::at_most() const {
  const bool others = (bits_ & S_IROTH) != 0;
  // Members of two groups have nothing in common, unless anybody may read.
  const bool members = (bits_ & S_IRGRP) != 0 && (others || !several_groups_);
  Access access;
  access.keep = S_IRWXU | (members ? S_IRWXG : 0U) | (others ? S_IRWXO : 0U);
  if (members && !others && group_) access.group = *group_;
  return access;
}

Access Readers::like(uint32_t mode) const {
  Access access = at_most();
  access.add = mode & bits_ & access.keep & (S_IRGRP | S_IROTH);
  return access;
}

}  // namespace stoker
