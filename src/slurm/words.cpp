// SPDX-License-Identifier: Apache-2.0
#include "slurm/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <span>
#include <utility>

#include "base/text.h"

namespace stoker {
namespace {

using Words = std::pair<std::string_view, std::string_view>;

constexpr std::array kStates = {
    Words{"PENDING", "waits in the queue"},
    Words{"RUNNING", "runs"},
    Words{"SUSPENDED", "is suspended: its processes are stopped, others have its cores"},
    Words{"COMPLETING", "ends: some of its processes are still there"},
    Words{"CONFIGURING", "has its nodes, which are made ready"},
    Words{"COMPLETED", "ended well"},
    Words{"FAILED", "failed"},
    Words{"CANCELLED", "was cancelled"},
    Words{"TIMEOUT", "ended by its time limit"},
    Words{"OUT_OF_MEMORY", "ended because it used more memory than it had asked for"},
    Words{"NODE_FAIL", "ended because a node failed"},
    Words{"BOOT_FAIL", "did not start: a node did not boot"},
    Words{"DEADLINE", "ended by its deadline"},
    Words{"PREEMPTED", "was stopped for a job that goes before it"},
    Words{"REQUEUED", "was put back into the queue"},
    Words{"RESIZING", "is changing its size"},
    Words{"REVOKED", "runs on another cluster of the federation"},
    Words{"SIGNALING", "gets a signal"},
    Words{"STAGE_OUT", "has ended, its files are being copied"},
    Words{"STOPPED", "is stopped and keeps its cores"},
};

constexpr std::array kReasons = {
    Words{"Priority", "other jobs come first"},
    Words{"Resources", "first in line: starts when enough is free"},
    Words{"Dependency", "waits for another job"},
    Words{"DependencyNeverSatisfied", "the job it waits for failed: cancel it (scancel)"},
    Words{"BeginTime", "its begin is in the future"},
    Words{"JobHeldUser", "held by its user (scontrol release lets it go)"},
    Words{"JobHeldAdmin", "held by an administrator"},
    Words{"JobArrayTaskLimit", "as many tasks of the array run as its % allows"},
    Words{"PartitionTimeLimit", "asks for more time than the partition allows"},
    Words{"PartitionNodeLimit", "asks for more nodes than the partition allows"},
    Words{"PartitionDown", "the partition is down"},
    Words{"PartitionInactive", "the partition takes no jobs now"},
    Words{"ReqNodeNotAvail", "a node it needs is not available (maintenance?)"},
    Words{"BadConstraints", "no node has what it asks for"},
    Words{"Licenses", "waits for a licence"},
    Words{"Reservation", "waits for its reservation"},
    Words{"QOSMaxJobsPerUserLimit", "you have as many jobs running as the QOS allows"},
    Words{"QOSMaxCpuPerUserLimit", "you have as many cores in use as the QOS allows"},
    Words{"QOSMaxGRESPerUser", "you have as many GPUs in use as the QOS allows"},
    Words{"QOSMaxMemoryPerUser", "you have as much memory in use as the QOS allows"},
    Words{"QOSGrpCpuLimit", "the QOS has as many cores in use as it may"},
    Words{"QOSGrpGRES", "the QOS has as many GPUs in use as it may"},
    Words{"AssocGrpCpuLimit", "your account has as many cores in use as it may"},
    Words{"AssocGrpGRES", "your account has as many GPUs in use as it may"},
    Words{"AssocGrpMemLimit", "your account has as much memory in use as it may"},
    Words{"AssocMaxJobsLimit", "your account has as many jobs running as it may"},
    Words{"AssocGrpCPUMinutesLimit", "your account's core hours are used up"},
    Words{"NodeDown", "a node is down"},
    Words{"JobLaunchFailure", "could not be started on its nodes, or was killed there"},
    Words{"NonZeroExitCode", "its script returned a failure"},
    Words{"RaisedSignal:9(Killed)", "its script was killed"},
    Words{"TimeLimit", "reached its time limit"},
    Words{"OutOfMemory", "used more memory than it had asked for"},
    Words{"InvalidAccount", "the account is not valid"},
    Words{"InvalidQOS", "the QOS is not valid"},
    Words{"launch failed requeued held", "could not be started; held (scontrol release)"},
};

std::string_view look_up(std::span<const Words> table, std::string_view word) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const Words& each) { return each.first == word; });
  return found == table.end() ? std::string_view() : found->second;
}

}  // namespace

std::string_view state_in_words(std::string_view state) {
  const std::string_view words = look_up(kStates, state);
  return words.empty() ? "is in a state that this version does not know" : words;
}

std::string reason_in_words(std::string_view reason) {
  if (reason.empty() || reason == "None" || reason == "N/A") return "";
  const std::string_view words = look_up(kReasons, reason);
  return words.empty() ? printable(reason) : fmt::format("{} ({})", words, reason);
}

std::string exit_in_words(const SlurmJob& job) {
  if (job.signal != 0) return fmt::format("killed by signal {}", job.signal);
  if (job.exit_status == 0) return "";
  // A shell says 128 more where a signal killed a command of it, and sacct takes the 128 away.
  constexpr std::array kOfCrashes = {SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGKILL, SIGSEGV, SIGTERM};
  const bool maybe =
      std::find(kOfCrashes.begin(), kOfCrashes.end(), job.exit_status) != kOfCrashes.end();
  return fmt::format("exit status {}{}", job.exit_status,
                     maybe ? fmt::format(", or {}: a command killed by signal {}",
                                         128 + job.exit_status, job.exit_status)
                           : "");
}

}  // namespace stoker
