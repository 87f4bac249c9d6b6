// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stoker {

/// A directory that a dataset might be brought to.
struct StagePlace {
  std::string path;
  std::string known_as;  // "$SLURM_TMPDIR"
  std::string type;      // of the file system
  uint64_t room = 0;     // bytes that this user can still write
  bool in_memory = false;
  /// Why nothing is staged there; empty where it can be.
  std::string problem;
};

/// What is known about a directory. Throws Error(not_found) where there is none.
StagePlace look_at_place(const std::string& path);

/// The places of this node that exist, those that cannot be used included: the well-known ones, and
/// those that the site's file calls local.
std::vector<StagePlace> well_known_places();

struct ChosenPlace {
  std::string path;
  std::string why;
};
/// The one with the most room. `device` is where the source lies: a copy on the same disk brings
/// nothing. Where no place has room for `bytes`: the largest with `partial`, else throws Error(io)
/// that says what is wrong with each.
ChosenPlace choose_place(const std::vector<StagePlace>& places, uint64_t bytes, uint64_t device,
                         bool partial);

}  // namespace stoker
