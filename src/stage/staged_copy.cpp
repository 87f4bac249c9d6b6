// SPDX-License-Identifier: Apache-2.0
#include "stage/staged_copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "os/node.h"
#include "os/own_place.h"
#include "os/process_mark.h"
#include "os/user_namespace.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kOwnPrefix = "stoker-";
constexpr uint64_t kMostState = 1 << 20;

/// Who else may rename what is in a place; empty: nobody.
std::string who_may_rename(const SafeDirectory& place) {
  const Ownership ownership = place.ownership();
  if ((ownership.mode & S_ISVTX) != 0) return "";
  if ((ownership.mode & S_IWOTH) != 0) return "anybody";
  if ((ownership.mode & S_IWGRP) == 0 || is_private_group(ownership.group, place.path())) return "";
  const struct group* entry = ::getgrgid(ownership.group);
  return entry == nullptr ? fmt::format("members of group {}", ownership.group)
                          : fmt::format("members of group {}", entry->gr_name);
}

/// Refuses a place where others could replace our directory with one of theirs.
void check_place(const SafeDirectory& place) {
  if (const std::string others = who_may_rename(place); !others.empty()) {
    throw Error(
        ErrorKind::permission,
        fmt::format("{}: {} may rename what is stored there (mode {:o}, without the sticky bit), "
                    "so a copy could be replaced: choose a directory that only you can write to, "
                    "or set the sticky bit (chmod +t)",
                    printable(place.path()), others, place.ownership().mode));
  }
  std::error_code failed;
  const fs::path real = fs::canonical(place.path(), failed);
  for (fs::path above = real; above.has_relative_path();) {
    above = above.parent_path();
    struct stat status {};
    if (::stat(above.c_str(), &status) != 0) continue;
    if ((status.st_mode & S_IWOTH) == 0 || (status.st_mode & S_ISVTX) != 0) continue;
    throw Error(ErrorKind::permission,
                fmt::format("{}: anybody may rename it: {} is world-writable without the sticky "
                            "bit: choose another place",
                            printable(place.path()), printable(above.string())));
  }
}

void check_owner(const std::string& path, uid_t owner) {
  if (owner == ::geteuid()) return;
  throw Error(ErrorKind::permission,
              fmt::format("{}: belongs to {}, not to you: somebody has taken this name; choose "
                          "another place",
                          printable(path), printable(user_in_words(owner))));
}

void check_own(const SafeDirectory& top) {
  const Ownership owner = top.ownership();
  check_owner(top.path(), owner.user);
  if ((owner.mode & (S_IWGRP | S_IWOTH)) != 0) {
    throw Error(ErrorKind::permission,
                fmt::format("{}: others may write there (mode {:o}), so nothing in it can be "
                            "trusted: remove it",
                            printable(top.path()), owner.mode));
  }
}

void give_tree(const SafeDirectory& directory, gid_t group) {
  const StageModes modes = modes_for(group);
  for (const DirectoryEntry& entry : directory.list()) {
    if (entry.kind == FileKind::directory) {
      give_tree(make_for(directory, entry.name, group), group);
    } else if (entry.kind == FileKind::file) {
      const Ownership now = directory.ownership(entry.name).value_or(Ownership{});
      if (now.group == group && now.mode == modes.file) continue;
      directory.give_file(entry.name, group, modes.file);
    }
  }
}

}  // namespace

StageModes modes_for(std::optional<gid_t> group) {
  return group ? StageModes{02750, 0640} : StageModes{};
}

SafeDirectory make_for(const SafeDirectory& in, const std::string& name,
                       std::optional<gid_t> group) {
  SafeDirectory made = in.make(name, modes_for(group).directory);
  if (group && made.ownership().group != *group) made.set_group(*group);
  if (group && made.ownership().mode != modes_for(group).directory) {
    made.set_mode(modes_for(group).directory);
  }
  return made;
}

std::string directory_of_user(uid_t user) {
  return fmt::format("{}{}", kOwnPrefix, outer_user(user));
}

std::optional<uid_t> user_of_directory(std::string_view name) {
  uid_t user = 0;
  if (!name.starts_with(kOwnPrefix)) return std::nullopt;
  name.remove_prefix(kOwnPrefix.size());
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), user);
  if (failed != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return inner_user(user);
}

gid_t group_named(const std::string& name) {
  const struct group* entry = ::getgrnam(name.c_str());
  if (entry == nullptr) {
    throw Error(ErrorKind::usage, fmt::format("group '{}': there is none", printable(name)));
  }
  const gid_t wanted = entry->gr_gid;
  std::vector<gid_t> groups(static_cast<size_t>(std::max(0, ::getgroups(0, nullptr))));
  groups.resize(static_cast<size_t>(
      std::max(0, ::getgroups(static_cast<int>(groups.size()), groups.data()))));
  if (wanted != ::getegid() && std::find(groups.begin(), groups.end(), wanted) == groups.end()) {
    throw Error(ErrorKind::usage, fmt::format("group '{}': you are not in it", printable(name)));
  }
  return wanted;
}

std::optional<SafeDirectory> own_directory(const std::string& place, std::optional<gid_t> group,
                                           bool create) {
  const SafeDirectory at(place);
  check_place(at);
  const std::string name = directory_of_user(::geteuid());
  // Asked first: a directory that somebody else keeps closed cannot be opened to look.
  const std::string path = at.path() + "/" + name;
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) check_owner(path, status.st_uid);
  std::optional<SafeDirectory> own = at.find(name);
  if (!own && !create) return std::nullopt;
  if (own) check_own(*own);  // before anything is changed
  SafeDirectory made = make_for(at, name, group);
  check_own(made);
  return made;
}

StagedCopy::StagedCopy(const SafeDirectory& top, std::string copy_name,
                       std::optional<gid_t> readers)
    : name(std::move(copy_name)),
      group(readers),
      modes(modes_for(group)),
      directory(make_for(top, name, group)),
      data(make_for(directory, "data", group)),
      claims(directory.make("claims", 0700)),
      parts(make_for(directory, "parts", group)),
      done(make_for(directory, "done", group)) {
  check_own(directory);
}

void StagedCopy::write_state(const Json& state, const std::string& mark) const {
  const SafeDirectory part = parts.make(mark, modes.directory);
  part.remove(kStateName);
  const int file = part.create(kStateName, modes.file);
  const std::string text = state.dump(1) + "\n";
  const ssize_t put = ::write(file, text.data(), text.size());
  const int cause = put < 0 ? errno : ENOSPC;  // a part of it: there is no room for the rest
  ::close(file);
  if (put != static_cast<ssize_t>(text.size())) {
    throw system_error(part.path() + "/" + kStateName, "cannot write", cause);
  }
  part.rename(kStateName, directory, kStateName);
}

void StagedCopy::give_to_group() const {
  if (group) give_tree(data, *group);
}

bool StagedCopy::at_work(const std::string& mark) const {
  const std::optional<FileInfo> part = parts.info(mark);
  return may_be_at_work(mark, parts, part ? part->modified_ns : 0);
}

void StagedCopy::remove_leftovers() const {
  for (const SafeDirectory* where : {&claims, &parts}) {
    for (const DirectoryEntry& entry : where->list()) {
      const std::string mark =
          where == &parts ? entry.name : where->read_mark(entry.name).value_or("");
      if (!at_work(mark)) where->remove_tree(entry.name);
    }
  }
}

Claim::Claim(const StagedCopy& copy, std::string name, const std::string& mark)
    : copy_(copy), name_(std::move(name)) {
  while (!(taken_ = copy_.claims.mark(name_, mark))) {
    const std::optional<std::string> other = copy_.claims.read_mark(name_);
    if (!other) continue;  // just given back
    if (copy_.at_work(*other)) return;
    copy_.claims.remove(name_);
    copy_.parts.remove_tree(*other);
  }
}

Claim::~Claim() {
  if (!taken_) return;
  try {
    copy_.claims.remove(name_);
  } catch (const Error&) {  // the place is gone, and the claim with it
  }
}

Json read_state(const SafeDirectory& copy, std::string* problem) {
  const auto say = [&](std::string what) {
    if (problem != nullptr) *problem = std::move(what);
    return Json();
  };
  try {
    const std::optional<std::string> text = copy.read(kStateName, kMostState);
    if (!text) return say(std::string(kStateName) + " is missing");
    Json state = parse_json(*text);
    return state.is_object() ? state : say(std::string(kStateName) + " is not a JSON object");
  } catch (const Json::exception&) {
    return say(std::string(kStateName) + " is not valid JSON");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt) throw;
    return say(error.what());
  }
}

bool says_complete(const Json& state) {
  const auto found = state.is_object() ? state.find("complete") : state.end();
  return found != state.end() && found->is_boolean() && found->get<bool>();
}

bool says_keep(const Json& state) {
  const auto found = state.is_object() ? state.find("keep") : state.end();
  return found == state.end() || !found->is_boolean() || found->get<bool>();
}

std::optional<int64_t> said_verified_at(const Json& state) {
  const auto found = state.is_object() ? state.find("verified_at") : state.end();
  if (found == state.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto seconds = found->get<uint64_t>();
  constexpr uint64_t kLatest = uint64_t{1} << 40;
  return seconds > 0 && seconds < kLatest ? std::optional(static_cast<int64_t>(seconds))
                                          : std::nullopt;
}

std::vector<GroupCopy> copies_of_group(const std::string& place, const std::string& name,
                                       gid_t group) {
  const SafeDirectory at(place);
  std::vector<GroupCopy> copies;
  const auto is_of = [&](const SafeDirectory& directory, uid_t user) {
    const Ownership owner = directory.ownership();
    return owner.user == user && owner.group == group && (owner.mode & (S_IWGRP | S_IWOTH)) == 0;
  };
  for (const DirectoryEntry& entry : at.list()) {
    const std::optional<uid_t> user = user_of_directory(entry.name);
    if (!user || *user == ::geteuid() || entry.kind != FileKind::directory) continue;
    try {
      const std::optional<SafeDirectory> top = at.find(entry.name);
      if (!top || !is_of(*top, *user)) continue;
      const std::optional<SafeDirectory> copy = top->find(name);
      if (!copy || !is_of(*copy, *user)) continue;
      if (says_complete(read_state(*copy))) copies.push_back({copy->path(), *user});
    } catch (const Error&) {  // not for us, or no copy at all: then we make our own
    }
  }
  return copies;
}

std::string work_mark() {
  static std::atomic<uint64_t> count{0};
  return fmt::format("{},{}", this_process_mark(), ++count);
}

bool may_be_at_work(std::string_view mark, const SafeDirectory& directory, int64_t written_ns) {
  constexpr int64_t kLongestPause = 300'000'000'000;
  const Alive alive = process_lives(mark.substr(0, mark.rfind(',')));
  if (alive != Alive::unknown) return alive == Alive::yes;
  // Of another host: by what it writes, on the clock of the file system, which may be a server's.
  return directory.touch() - written_ns < kLongestPause;
}

}  // namespace stoker
