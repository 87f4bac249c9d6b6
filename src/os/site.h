// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace stoker {

/// What jobs ask for where nothing else is said.
struct SiteJobs {
  std::string partition, account, time;
  std::vector<std::string> sbatch;  // further options of sbatch
};

/// A directory that a site has rules for.
struct SitePlace {
  std::string path;
  bool local = false;                // a node's own: datasets may be staged there
  std::optional<double> purge_days;  // without a touch, after which the site deletes files
};

/// What a cluster is like, as far as nobody can measure it.
struct Site {
  SiteJobs slurm;
  SiteJobs transfer;  // jobs that bring data in from storage that compute nodes do not see
  std::vector<SitePlace> places;
  std::optional<double> core_hour, gpu_hour;  // prices
};

/// The site's file, $STOKER_SITE or /etc/stoker/site.toml, and over it the user's own,
/// ~/.config/stoker/site.toml. Throws Error(corrupt) that names file, line and cause, also for a
/// name that means nothing.
Site read_site();

/// The place of the site that `path` lies in, the innermost one; null where it is none of them.
const SitePlace* place_of(const Site& site, const std::string& path);

}  // namespace stoker
