// SPDX-License-Identifier: Apache-2.0
#include "stage/purge.h"

#include <sys/stat.h>

#include <algorithm>

#include "os/site.h"

namespace stoker {

std::optional<double> purge_days(const std::string& place) {
  const Site site = read_site();
  const SitePlace* rule = place_of(site, place);
  return rule == nullptr ? std::nullopt : rule->purge_days;
}

int64_t last_touched_ns(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return 0;
  const auto ns = [](const timespec& time) {
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return std::max(ns(status.st_atim), ns(status.st_mtim));
}

}  // namespace stoker
