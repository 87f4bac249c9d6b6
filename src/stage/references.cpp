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
#include "os/user_namespace.h"

namespace stoker {

std::string own_job() {
  const std::string job = environment("SLURM_JOB_ID");
  const bool number =
      std::all_of(job.begin(), job.end(), [](char c) { return c >= '0' && c <= '9'; });
  return number ? job : "";
}

namespace {

constexpr const char* kReferences = "refs";
constexpr std::string_view kJob = "job,", kProcess = "process,";

constexpr double kPatience = 10;  // for an answer of Slurm, in seconds

/// What names of jobs, runs and clusters consist of, as part of a file's name.
bool is_plain(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '.';
  });
}

/// What the cluster says about itself.
struct ClusterFacts {
  std::string name;           // empty where it cannot be asked
  bool jobs_private = false;  // users are shown their own jobs only
};

ClusterFacts ask_cluster() {
  const CommandAnswer answer = slurm_answer({"scontrol", "show", "config"}, kPatience);
  ClusterFacts facts;
  facts.jobs_private = answer.status != 0;
  std::istringstream lines(answer.output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("PrivateData")) {
      facts.jobs_private = line.find("jobs") != std::string::npos;
    } else if (line.starts_with("ClusterName")) {
      std::istringstream words(line.substr(std::min(line.find('='), line.size() - 1) + 1));
      words >> facts.name;
    }
  }
  return facts;
}

/// Jobs that wait, run or end; nothing where Slurm cannot be asked.
class Jobs {
 public:
  bool may_run(const Reference& reference, bool of_others) {
    const std::string job = reference.who.substr(kJob.size());
    if (job == own_job()) return true;  // many ranks of one job need not ask
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
    // Several clusters may share a file system, and each counts its jobs itself.
    if (!reference.cluster.empty() && cluster().name != reference.cluster) return true;
    return of_others && cluster().jobs_private;
  }

 private:
  const ClusterFacts& cluster() {
    if (!cluster_) cluster_ = ask_cluster();
    return *cluster_;
  }

  bool asked_ = false;
  std::optional<std::set<std::string>> known_;
  std::optional<ClusterFacts> cluster_;
};

constexpr std::string_view kRun = ",run=", kCluster = ",cluster=";

std::string name_of(const Reference& reference) {
  std::string name =
      fmt::format("{}:{}@{}", outer_user(reference.owner), reference.copy, reference.who);
  if (!reference.run.empty()) name += fmt::format("{}{}", kRun, reference.run);
  if (!reference.cluster.empty()) name += fmt::format("{}{}", kCluster, reference.cluster);
  return name;
}

/// Takes what follows `key` off the end of `text`.
std::string take_from(std::string& text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string::npos) return "";
  std::string value = text.substr(at + key.size());
  text.resize(at);
  return value;
}

/// "UID:COPY@WHO".
std::optional<Reference> parse(const std::string& name) {
  const size_t colon = name.find(':'), at = name.rfind('@');
  Reference reference;
  uid_t owner = 0;
  if (colon == std::string::npos || at == std::string::npos || at < colon) return std::nullopt;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + colon, owner);
  if (failed != std::errc() || end != name.data() + colon) return std::nullopt;
  const std::optional<uid_t> known = inner_user(owner);
  if (!known) return std::nullopt;
  reference.owner = *known;
  reference.copy = name.substr(colon + 1, at - colon - 1);
  reference.who = name.substr(at + 1);
  if (reference.who.starts_with(kJob)) {
    reference.cluster = take_from(reference.who, kCluster);
    reference.run = take_from(reference.who, kRun);
  }
  return reference;
}

bool counts(const Reference& reference, const SafeDirectory& directory, int64_t written_ns,
            bool of_others, Jobs& jobs) {
  if (reference.who.starts_with(kJob)) return jobs.may_run(reference, of_others);
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
                             const std::string& copy, const std::string& mark, const JobNeed& job,
                             std::chrono::milliseconds pause)
    : directory_(make_for(top, kReferences, group)),
      name_(name_of({owner, copy, std::string(kProcess) + mark, ""})) {
  const StageModes modes = modes_for(group);
  create_empty(directory_, name_, modes.file);
  if (const std::string number = own_job(); job.needs && !number.empty()) {
    Reference reference{owner, copy, std::string(kJob) + number, job.run};
    const std::string cluster = environment("SLURM_CLUSTER_NAME");
    if (is_plain(cluster)) reference.cluster = cluster;
    const std::string name = name_of(reference);
    if (create_empty(directory_, name, modes.file)) job_name_ = name;
  }
  heartbeat_.emplace([this] { directory_.touch(name_); }, pause);
}

bool HeldReference::made(const Reference& reference) const {
  const std::string name = name_of(reference);
  return name == name_ || name == job_name_;
}

void HeldReference::withdraw() {
  directory_.remove(name_);
  if (!job_name_.empty()) directory_.remove(job_name_);
}

HeldReference::~HeldReference() {
  heartbeat_.reset();
  try {
    directory_.remove(name_);
  } catch (const Error&) {  // the place is gone, and the reference with it
  }
}

void drop_references_of_job(const SafeDirectory& top, const std::string& job,
                            const std::string& run, bool all_runs) {
  const std::optional<SafeDirectory> directory = top.find(kReferences);
  if (!directory || job.empty()) return;
  for (const DirectoryEntry& entry : directory->list()) {
    const std::optional<Reference> reference = parse(entry.name);
    if (!reference || reference->who != std::string(kJob) + job) continue;
    if (all_runs || reference->run == run) directory->remove(entry.name);
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
      // Not of our group: needs nothing of ours. Or just removed, by a process that cleans up.
      if (error.kind() != ErrorKind::permission && error.kind() != ErrorKind::not_found) throw;
    }
  }
  return found;
}

}  // namespace stoker
