// SPDX-License-Identifier: Apache-2.0
#include "stage/inventory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/inner_path.h"
#include "base/json.h"
#include "base/text.h"
#include "dataset/manifest.h"
#include "os/node.h"
#include "os/site.h"
#include "stage/choose_place.h"
#include "stage/purge.h"
#include "stage/references.h"
#include "stage/staged_copy.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kRemoving = "removing,";

/// Those given; otherwise this node's own and, where they are only looked at, all of the site's.
std::vector<std::string> places_of(const std::vector<std::string>& given, bool of_site) {
  std::vector<std::string> places = given;
  if (given.empty()) {
    for (const StagePlace& place : well_known_places()) places.push_back(place.path);
    for (const SitePlace& place : read_site().places) {
      if (of_site && !place.local) places.push_back(place.path);
    }
  }
  // $TMPDIR is often another one under a second name.
  std::vector<std::string> real;
  for (const std::string& place : places) {
    std::error_code failed;
    const std::string path = fs::canonical(place, failed).string();
    if (failed && !given.empty()) throw system_error(place, "cannot open", failed.value());
    if (!failed && std::find(real.begin(), real.end(), path) == real.end()) real.push_back(path);
  }
  return real;
}

/// Sizes and the times that a purge looks at, of all files below.
struct TreeFacts {
  uint64_t bytes = 0;
  int64_t longest_untouched_ns = 0;  // the earliest time at which a file was touched last
};

/// Somebody else's tree may be made to be endless.
constexpr int kDeepest = 256;

void look_below(const SafeDirectory& directory, TreeFacts& facts, int depth = 0) {
  if (depth > kDeepest) {
    throw Error(ErrorKind::corrupt, printable(directory.path()) + ": is too deep for a dataset");
  }
  for (const DirectoryEntry& entry : directory.list()) {
    if (entry.kind == FileKind::directory) {
      if (const auto inner = directory.find(entry.name)) look_below(*inner, facts, depth + 1);
    } else if (entry.kind == FileKind::file) {
      const std::optional<FileInfo> info = directory.info(entry.name);
      if (!info) continue;
      facts.bytes += info->size;
      const int64_t touched = last_touched_ns(directory.path() + "/" + entry.name);
      if (facts.longest_untouched_ns == 0 || touched < facts.longest_untouched_ns) {
        facts.longest_untouched_ns = touched;
      }
    }
  }
}

std::string text_of(const Json& state, const char* member) {
  return state.is_object() && state.contains(member) && state[member].is_string()
             ? state[member].get<std::string>()
             : "";
}

/// What of the copy is the dataset: "", or "/x.h5::train". Somebody else's may say anything.
std::string opens(const Json& state) {
  const std::string text = name_from_json(text_of(state, "opens"));
  const bool below = text.starts_with('/') && unsafe_path(text.substr(1)).empty();
  return below || text.starts_with("::") ? text : "";
}

StagedItem look_at_copy(const std::string& place, const SafeDirectory& copy, uid_t owner) {
  constexpr double kNs = 1e-9, kDay = 24 * 3600;
  StagedItem item;
  item.node = node_name();
  item.place = place;
  item.directory = copy.path();
  item.owner = owner;
  item.own = owner == ::geteuid();
  std::string problem;
  const Json state = read_state(copy, &problem);
  // Of what is our own nothing is passed over; it may have been killed before it said anything.
  if (!problem.empty() && !item.own) throw Error(ErrorKind::corrupt, problem);
  item.source = name_from_json(text_of(state, "source"));
  item.complete = says_complete(state);
  item.keep = says_keep(state);
  item.verified_at = said_verified_at(state).value_or(0);
  TreeFacts facts;
  if (const auto data = copy.find("data")) {
    look_below(*data, facts);
    if (item.complete) item.path = data->path() + opens(state);
  }
  item.bytes = facts.bytes;
  const int64_t now = time_of_day_ns();
  int64_t written = now;
  struct stat status {};
  if (::lstat(copy.path().c_str(), &status) == 0) {
    written = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  }
  // A clock that runs ahead elsewhere makes nothing younger than new.
  item.age_s = std::max(0.0, static_cast<double>(now - written) * kNs);
  if (const auto days = purge_days(place); days && facts.longest_untouched_ns > 0) {
    const double untouched =
        std::max(0.0, static_cast<double>(now - facts.longest_untouched_ns) * kNs / kDay);
    item.purged_in_days = std::max(0.0, *days - untouched);
  }
  return item;
}

/// Whether it is meant for its owner alone, which is nothing to speak of.
bool is_refusal(const Error& error) { return error.kind() == ErrorKind::permission; }

std::vector<StagedItem> list_user(const std::string& place, const SafeDirectory& top, uid_t owner,
                                  std::vector<PassedOver>* passed_over = nullptr) {
  std::vector<StagedItem> items;
  const std::vector<Reference> references = live_references(SafeDirectory(place), owner);
  for (const DirectoryEntry& entry : top.list()) {
    const bool other = entry.name == "refs" || entry.name.starts_with(kRemoving);
    if (entry.kind != FileKind::directory || other) continue;
    try {
      const std::optional<SafeDirectory> copy = top.find(entry.name);
      if (!copy || copy->ownership().user != owner) continue;
      StagedItem item = look_at_copy(place, *copy, owner);
      for (const Reference& reference : references) {
        if (reference.copy == entry.name) item.references.push_back(reference.who);
      }
      items.push_back(std::move(item));
    } catch (const Error& error) {
      // Not for us, or made to disturb; of what is our own nothing may be passed over.
      if (owner == ::geteuid()) throw;
      if (passed_over == nullptr || is_refusal(error)) continue;
      passed_over->push_back({node_name(), top.path() + "/" + entry.name, owner, error.what()});
    }
  }
  return items;
}

}  // namespace

StagedList list_staged(const std::vector<std::string>& places) {
  StagedList list;
  for (const std::string& path : places_of(places, true)) {
    const SafeDirectory place(path);
    for (const DirectoryEntry& entry : place.list()) {
      const std::optional<uid_t> owner = user_of_directory(entry.name);
      if (!owner || entry.kind != FileKind::directory) continue;
      try {
        const std::optional<SafeDirectory> top = place.find(entry.name);
        if (!top || top->ownership().user != *owner) continue;  // somebody took that name
        for (StagedItem& item : list_user(path, *top, *owner, &list.passed_over)) {
          list.items.push_back(std::move(item));
        }
      } catch (const Error& error) {
        if (*owner == ::geteuid()) throw;
        if (!is_refusal(error)) {
          list.passed_over.push_back({node_name(), path + "/" + entry.name, *owner, error.what()});
        }
      }
    }
  }
  return list;
}

namespace {

/// What a clean that was killed had taken out of the way.
void remove_leftovers(const SafeDirectory& top) {
  for (const DirectoryEntry& entry : top.list()) {
    const std::string_view name = entry.name;
    if (!name.starts_with(kRemoving)) continue;
    const int64_t written = top.info(entry.name).value_or(FileInfo{}).modified_ns;
    if (!may_be_at_work(name.substr(kRemoving.size()), top, written)) top.remove_tree(entry.name);
  }
}

/// Removes a copy unless somebody refers to it by now. It is taken out of the way first: who comes
/// then refers to it and finds it gone, or is seen here.
bool remove_copy(const SafeDirectory& place, const SafeDirectory& top, const std::string& name,
                 const CleanOptions& options) {
  const std::string aside = std::string(kRemoving) + work_mark();
  top.rename(name, top, aside);
  const std::vector<Reference> references = live_references(place, ::geteuid());
  const bool in_use = std::any_of(references.begin(), references.end(),
                                  [&](const Reference& one) { return one.copy == name; });
  const std::optional<SafeDirectory> copy = top.find(aside);
  const bool kept = options.ended_only && copy && says_keep(read_state(*copy));
  if ((in_use && !options.all) || kept) {
    try {
      top.rename(aside, top, name);
      return false;
    } catch (const Error&) {  // they have begun anew
    }
  }
  top.remove_tree(aside);
  return true;
}

/// Whether there may be copies of jobs and commands that have ended: who needs what is asked for
/// only then.
bool has_ended_copies(const SafeDirectory& top, const CleanOptions& options) {
  const std::vector<DirectoryEntry> entries = top.list();
  return std::any_of(entries.begin(), entries.end(), [&](const DirectoryEntry& entry) {
    if (entry.kind != FileKind::directory || entry.name == options.except) return false;
    const std::optional<SafeDirectory> copy = top.find(entry.name);
    return copy && !says_keep(read_state(*copy));
  });
}

}  // namespace

CleanResult clean_staged(const CleanOptions& options) {
  CleanResult result;
  for (const std::string& place : places_of(options.places, false)) {
    std::optional<SafeDirectory> top;
    try {
      top = own_directory(place, std::nullopt, false);
    } catch (const Error& error) {
      const bool named = !options.places.empty() && !options.ended_only;
      if (!is_refusal(error) || named) throw;
    }
    if (!top || (options.ended_only && !has_ended_copies(*top, options))) continue;
    // Who asks by age, or about one copy, tidies up: the job may still need what it has staged.
    if (!options.job.empty()) {
      drop_references_of_job(*top, options.job, options.run, options.run.empty());
    } else if (!options.older_s && options.only.empty() && !options.ended_only) {
      drop_references_of_job(*top, own_job(), "", false);
    }
    for (StagedItem& item : list_user(place, *top, ::geteuid())) {
      if (!options.only.empty() && item.directory != options.only) continue;
      if (fs::path(item.directory).filename() == options.except) continue;
      if (options.ended_only && item.keep) continue;
      const bool old = !options.older_s || item.age_s > *options.older_s;
      if (!old || (!options.all && !item.references.empty())) {
        result.kept.push_back(std::move(item));
        continue;
      }
      const std::string name = fs::path(item.directory).filename().string();
      if (!remove_copy(SafeDirectory(place), *top, name, options)) {
        result.kept.push_back(std::move(item));
        continue;
      }
      result.bytes += item.bytes;
      result.removed.push_back(std::move(item));
    }
    remove_leftovers(*top);
    top->remove_empty("refs");
    SafeDirectory(place).remove_empty(fs::path(top->path()).filename().string());
  }
  return result;
}

}  // namespace stoker
