// SPDX-License-Identifier: Apache-2.0
#include "stage/references.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <sstream>

#include "base/error.h"
#include "os/node.h"
#include "os/slurm_answer.h"

namespace stoker {
namespace {

constexpr const char* kReferences = "refs";
constexpr std::string_view kJob = "job,", kProcess = "process,";

/// This job's number; empty outside of one, and for what is no number.
std::string own_job() {
  const std::string job = environment("SLURM_JOB_ID");
  const bool number =
      std::all_of(job.begin(), job.end(), [](char c) { return c >= '0' && c <= '9'; });
  return number ? job : "";
}

constexpr double kPatience = 10;  // for an answer of Slurm, in seconds

/// Whether the site shows users their own jobs only.
bool jobs_are_private() {
  const CommandAnswer answer = slurm_answer({"scontrol", "show", "config"}, kPatience);
  std::istringstream lines(answer.output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("PrivateData")) return line.find("jobs") != std::string::npos;
  }
  return answer.status != 0;
}

/// Jobs that wait, run or end; nothing where Slurm cannot be asked.
class Jobs {
 public:
  bool may_run(const std::string& job, bool of_others) {
    if (!asked_) {
      asked_ = true;
      const CommandAnswer answer =
          slurm_answer({"squeue", "--noheader", "--all", "--format=%A"}, kPatience);
      if (answer.status == 0) {
        std::istringstream words(answer.output);
        known_.emplace();
        for (std::string word; words >> word;) known_->insert(word);
      }
    }
    if (!known_ || known_->contains(job)) return true;
    if (of_others && !private_) private_ = jobs_are_private();
    return of_others && *private_;
  }

 private:
  bool asked_ = false;
  std::optional<std::set<std::string>> known_;
  std::optional<bool> private_;
};

std::string name_of(uid_t owner, const std::string& copy, std::string_view kind,
                    const std::string& who) {
  return fmt::format("{}:{}@{}{}", owner, copy, kind, who);
}

/// "UID:COPY@WHO".
std::optional<Reference> parse(const std::string& name) {
  const size_t colon = name.find(':'), at = name.rfind('@');
  Reference reference;
  if (colon == std::string::npos || at == std::string::npos || at < colon) return std::nullopt;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + colon, reference.owner);
  if (failed != std::errc() || end != name.data() + colon) return std::nullopt;
  reference.copy = name.substr(colon + 1, at - colon - 1);
  reference.who = name.substr(at + 1);
  return reference;
}

bool counts(const Reference& reference, const SafeDirectory& directory, int64_t written_ns,
            bool of_others, Jobs& jobs) {
  if (reference.who.starts_with(kJob)) {
    return jobs.may_run(reference.who.substr(kJob.size()), of_others);
  }
  if (!reference.who.starts_with(kProcess)) return false;
  return may_be_at_work(reference.who.substr(kProcess.size()), directory, written_ns);
}

/// False where it was there.
bool create_empty(const SafeDirectory& directory, const std::string& name, uint32_t mode) {
  const int made = directory.create(name, mode);
  if (made >= 0) ::close(made);
  return made >= 0;
}

/// Whether somebody else can need what lies in a directory for copies: it is for a group, and so is
/// theirs. Otherwise anybody could keep anybody from cleaning up.
bool share(const Ownership& copies, const Ownership& theirs) {
  constexpr uint32_t kMayRead = S_IRGRP | S_IXGRP;
  return copies.group == theirs.group && (copies.mode & theirs.mode & kMayRead) == kMayRead;
}

}  // namespace

HeldReference::HeldReference(const SafeDirectory& top, std::optional<gid_t> group, uid_t owner,
                             const std::string& copy, const std::string& mark, bool for_job,
                             std::chrono::milliseconds pause)
    : directory_(make_for(top, kReferences, group)), name_(name_of(owner, copy, kProcess, mark)) {
  const StageModes modes = modes_for(group);
  create_empty(directory_, name_, modes.file);
  if (const std::string job = own_job(); for_job && !job.empty()) {
    const std::string name = name_of(owner, copy, kJob, job);
    if (create_empty(directory_, name, modes.file)) job_name_ = name;
  }
  heartbeat_.emplace([this] { directory_.touch(name_); }, pause);
}

bool HeldReference::made(const Reference& reference) const {
  const std::string name = name_of(reference.owner, reference.copy, "", reference.who);
  return name == name_ || name == job_name_;
}

HeldReference::~HeldReference() {
  heartbeat_.reset();
  try {
    directory_.remove(name_);
  } catch (const Error&) {  // the place is gone, and the reference with it
  }
}

void drop_references_of_job(const SafeDirectory& top) {
  const std::optional<SafeDirectory> directory = top.find(kReferences);
  const std::string job = own_job();
  if (!directory || job.empty()) return;
  for (const DirectoryEntry& entry : directory->list()) {
    const std::optional<Reference> reference = parse(entry.name);
    if (reference && reference->who == std::string(kJob) + job) directory->remove(entry.name);
  }
}

void remove_dead_references(const SafeDirectory& top) {
  const std::optional<SafeDirectory> directory = top.find(kReferences);
  if (!directory) return;
  for (const DirectoryEntry& entry : directory->list()) {
    const std::optional<Reference> reference = parse(entry.name);
    const std::optional<FileInfo> info = directory->info(entry.name);
    if (!reference || !info || !reference->who.starts_with(kProcess)) continue;
    const std::string mark = reference->who.substr(kProcess.size());
    if (!may_be_at_work(mark, *directory, info->modified_ns)) directory->remove(entry.name);
  }
}

std::vector<Reference> live_references(const SafeDirectory& place, uid_t owner) {
  std::vector<Reference> found;
  Jobs jobs;
  const Ownership copies = place.ownership(directory_of_user(owner)).value_or(Ownership{});
  for (const DirectoryEntry& user : place.list()) {
    const std::optional<uid_t> whose = user_of_directory(user.name);
    if (!whose || user.kind != FileKind::directory) continue;
    try {
      const auto ownership = place.ownership(user.name);
      if (!ownership || ownership->user != *whose) continue;  // somebody else took that name
      const std::optional<SafeDirectory> top = place.find(user.name);
      const std::optional<SafeDirectory> refs = top ? top->find(kReferences) : std::nullopt;
      if (!refs) continue;
      for (const DirectoryEntry& entry : refs->list()) {
        const std::optional<Reference> reference = parse(entry.name);
        const std::optional<FileInfo> info = refs->info(entry.name);
        if (!reference || !info) continue;
        // Of those to copies of somebody else nothing needs to be known.
        if (*whose != ::geteuid() && reference->owner != owner) continue;
        if (!counts(*reference, *refs, info->modified_ns, *whose != ::geteuid(), jobs)) {
          if (*whose == ::geteuid()) refs->remove(entry.name);
        } else if (reference->owner == owner && (*whose == owner || share(copies, *ownership))) {
          found.push_back(*reference);
        }
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::permission) throw;  // not of our group: needs nothing of ours
    }
  }
  return found;
}

}  // namespace stoker
