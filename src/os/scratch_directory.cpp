// SPDX-License-Identifier: Apache-2.0
#include "os/scratch_directory.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "os/own_place.h"
#include "os/process_mark.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

// "stoker-scratch-MARK-XXXXXX".
constexpr std::string_view kPrefix = "stoker-scratch-";

/// Whether it is the name of a directory that a process made which is no more. What only begins
/// alike is somebody's own.
bool is_abandoned(std::string_view name) {
  name.remove_prefix(kPrefix.size());
  const std::string_view mark = name.substr(0, name.rfind('-'));
  constexpr auto kCommas = 4;
  return std::count(mark.begin(), mark.end(), ',') == kCommas && process_lives(mark) == Alive::no;
}

}  // namespace

TemporaryDirectory::TemporaryDirectory(std::string path) : path_(std::move(path)) {
  if (::mkdtemp(path_.data()) == nullptr) throw system_error(path_, "cannot create", errno);
  held_.emplace(path_);
  if (held_->ownership().user != ::geteuid() || !held_->list().empty()) {
    held_.reset();
    throw Error(ErrorKind::permission,
                printable(path_) + ": another user has put something else in its place");
  }
}

TemporaryDirectory::~TemporaryDirectory() {
  try {
    held_->remove_contents();
  } catch (const Error&) {  // stays: it is in nobody's way
  }
  ::rmdir(path_.c_str());
}

namespace {

std::string name_for_scratch() {
  remove_abandoned_scratch();
  const std::string name = std::string(kPrefix) + this_process_mark() + "-XXXXXX";
  return (fs::temp_directory_path() / name).string();
}

}  // namespace

ScratchDirectory::ScratchDirectory() : directory_(name_for_scratch()) {}

void remove_abandoned_scratch() {
  std::error_code failed;
  const fs::path where = fs::temp_directory_path(failed);
  if (failed) return;
  // Names first: a directory for everybody's temporary files may have very many.
  std::vector<std::string> names;
  for (fs::directory_iterator entry(where, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    std::string name = entry->path().filename().string();
    if (name.starts_with(kPrefix)) names.push_back(std::move(name));
  }
  if (names.empty()) return;
  try {
    if (!others_who_rename(where.string()).empty()) return;
    const SafeDirectory directory(where.string());
    for (const std::string& name : names) {
      const auto owner = directory.ownership(name);
      const auto info = directory.info(name);
      if (!owner || owner->user != ::geteuid() || !info || info->kind != FileKind::directory) {
        continue;
      }
      if (is_abandoned(name)) directory.remove_tree(name);
    }
  } catch (const Error&) {  // not ours to remove after all, or just gone
  }
}

}  // namespace stoker
