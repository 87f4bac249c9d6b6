// SPDX-License-Identifier: Apache-2.0
#include "os/open_file_limit.h"

#include <algorithm>

namespace stoker {

uint64_t open_file_limit() {
  constexpr uint64_t kMinimum = 64;  // where the system does not say
  struct rlimit limit {};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : kMinimum;
}

MoreOpenFiles::MoreOpenFiles() {
  constexpr rlim_t kEnough = 8192;
  if (::getrlimit(RLIMIT_NOFILE, &before_) != 0 || before_.rlim_cur >= kEnough) return;
  struct rlimit more = before_;
  more.rlim_cur = std::min(before_.rlim_max, kEnough);
  raised_ = ::setrlimit(RLIMIT_NOFILE, &more) == 0;
}

MoreOpenFiles::~MoreOpenFiles() {
  if (raised_) (void)::setrlimit(RLIMIT_NOFILE, &before_);
}

}  // namespace stoker
