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
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "os/process_mark.h"

namespace stoker {
namespace {

constexpr std::string_view kOwnPrefix = "stoker-";
constexpr uint64_t kMostState = 1 << 20;

/// Refuses a place where others could exchange our directory for one of theirs.
void check_place(const SafeDirectory& place) {
  const Ownership owner = place.ownership();
  const bool anybody = (owner.mode & S_IWOTH) != 0;
  if (!anybody || (owner.mode & S_ISVTX) != 0) return;
  throw Error(
      ErrorKind::permission,
      fmt::format("{}: anybody may rename what lies there (it is world-writable without the "
                  "sticky bit): choose another place, or a directory of your own below it",
                  printable(place.path())));
}

void check_own(const SafeDirectory& top) {
  const Ownership owner = top.ownership();
  if (owner.user != ::geteuid()) {
    throw Error(
        ErrorKind::permission,
        fmt::format("{}: belongs to user {}, not to you: somebody has taken this name; choose "
                    "another place",
                    printable(top.path()), owner.user));
  }
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

std::string directory_of_user(uid_t user) { return fmt::format("{}{}", kOwnPrefix, user); }

std::optional<uid_t> user_of_directory(std::string_view name) {
  uid_t user = 0;
  if (!name.starts_with(kOwnPrefix)) return std::nullopt;
  name.remove_prefix(kOwnPrefix.size());
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), user);
  if (failed != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return user;
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

Json read_state(const SafeDirectory& copy) {
  try {
    const std::optional<std::string> text = copy.read(kStateName, kMostState);
    if (!text) return {};
    Json state = parse_json(*text);
    return state.is_object() ? state : Json();
  } catch (const Json::exception&) {
    return {};
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::corrupt) return {};
    throw;
  }
}

bool says_complete(const Json& state) {
  const auto found = state.is_object() ? state.find("complete") : state.end();
  return found != state.end() && found->is_boolean() && found->get<bool>();
}

std::optional<GroupCopy> copy_of_group(const std::string& place, const std::string& name,
                                       gid_t group) {
  const SafeDirectory at(place);
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
      if (says_complete(read_state(*copy))) {
        return GroupCopy{copy->path(), *user};
      }
    } catch (const Error&) {  // not for us, or no copy at all: then we make our own
    }
  }
  return std::nullopt;
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
