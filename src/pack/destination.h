// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "dataset/index.h"
#include "dataset/manifest.h"
#include "os/output_file.h"

namespace stoker {

/// Where things lie while a destination is being written.
struct Destination {
  std::string root;
  std::string plan;      // directory; gone when the work is complete
  std::string new_plan;  // the same while it is made
  std::string old_plan;  // and on its way out: renamed first, so it is whole or not there

  explicit Destination(const std::string& path)
      : root(std::filesystem::weakly_canonical(std::filesystem::absolute(path)).string()),
        plan((std::filesystem::path(root) / kIndexDirectory / "pack").string()),
        new_plan(plan + ".new"),
        old_plan(plan + ".done") {}

  std::string dataset(const std::string& directory) const {
    return directory.empty() ? root : root + "/" + directory;
  }
};

/// Throws Error(permission) where one of the directories that `names` lead through, one in the
/// other, is a link: somebody may have put it there, and nothing is written or removed through it.
/// Empty names are passed over.
void refuse_links(const Destination& destination, const std::vector<std::string>& names);
/// The plan is not needed any more.
void remove_plan(const Destination& destination);
/// A directory of ours that has nothing in it any more.
/// Throws Error(permission) where somebody else may have put the plan or index there.
void refuse_untrusted(const Destination& destination);
/// Throws Error(usage) where a complete pack is there with samples that `source` lacks: they would
/// be lost if it were replaced.
void refuse_to_lose(const Destination& destination, const Index& source);
void remove_if_empty(const std::filesystem::path& directory);
/// Everything that an earlier pack wrote to the destination, complete or not; files that are not
/// ours stay.
void remove_earlier(const Destination& destination);
/// Whether a complete pack lies there, as a whole or as splits.
bool holds_pack(const Destination& destination);
/// Throws where something lies in the destination that no pack of ours has written.
void refuse_foreign(const Destination& destination);

/// A directory that is made where it does not exist, and goes again if nothing came into it.
class NewDirectory {
 public:
  explicit NewDirectory(std::string path) : path_(std::move(path)) {
    existed_ = std::filesystem::is_directory(path_);
    make_directories(path_);
  }
  ~NewDirectory() {
    if (!existed_) remove_if_empty(path_);
  }
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;

 private:
  std::string path_;
  bool existed_ = false;
};

}  // namespace stoker
