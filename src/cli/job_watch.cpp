// SPDX-License-Identifier: Apache-2.0
#include "cli/job_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/job_report.h"
#include "cli/output.h"
#include "os/node.h"
#include "slurm/node_use.h"
#include "slurm/text.h"

namespace stoker {
namespace {

struct Seen {
  NodeUse now, before;
};

double cores_busy(double cpu_now, double cpu_before, const Seen& seen) {
  const double seconds = seen.now.time_s - seen.before.time_s;
  return seconds > 0 ? std::max(0.0, (cpu_now - cpu_before) / seconds) : 0;
}

double cpu_before(const Seen& seen, int64_t pid) {
  for (const NodeUse::Process& process : seen.before.largest) {
    if (process.pid == pid) return process.cpu_s;
  }
  return -1;
}

std::string nodes_text(const std::map<std::string, Seen>& nodes, const Style& style) {
  std::vector<std::vector<std::string>> rows, processes;
  for (const auto& [name, seen] : nodes) {
    rows.push_back({printable(name),
                    fmt::format("{:.1f}", cores_busy(seen.now.cpu_s, seen.before.cpu_s, seen)),
                    slurm_size(seen.now.memory),
                    seen.now.page_cache ? slurm_size(*seen.now.page_cache) : "-",
                    format_count(seen.now.processes)});
    for (const NodeUse::Process& process : seen.now.largest) {
      const double before = cpu_before(seen, process.pid);
      processes.push_back(
          {printable(name), fmt::format("{}", process.pid),
           before < 0 ? "-"
                      : fmt::format("{:.0f} %", 100 * cores_busy(process.cpu_s, before, seen)),
           slurm_size(process.memory), format_count(process.threads), printable(process.name)});
    }
  }
  if (rows.empty()) return "";
  return "\n" +
         table({{"node"},
                {"cores busy", true},
                {"memory", true},
                {"page cache", true},
                {"processes", true}},
               rows, style) +
         "\n" +
         table({{"node"},
                {"pid", true},
                {"CPU", true},
                {"memory", true},
                {"threads", true},
                {"command"}},
               processes, style);
}

void wait_for(unsigned seconds, Progress& progress) {
  for (unsigned tenth = 0; tenth < 10 * seconds; ++tenth) {
    progress.check_stop();
    ::poll(nullptr, 0, 100);
  }
}

/// Asking the controller costs everybody: less often than a node is looked at, unless there is no
/// other way.
constexpr double kAskAgain = 15, kAskWithoutNodes = 5;

class Watch {
 public:
  Watch(std::string id, unsigned every_s) : id_(std::move(id)), every_s_(every_s) {}

  int run(Progress& progress) {
    while (true) {
      const double now = static_cast<double>(monotonic_ns()) * 1e-9;
      const bool ended = watch_ && !watch_->runs();
      if (asked_ == 0 || now - asked_ > (watch_ && !ended ? kAskAgain : kAskWithoutNodes) ||
          (ended && !told_)) {
        report_ = job(id_, "", slurm_runner());
        asked_ = now;
        told_ = ended;
      }
      const SlurmJob& first = report_.parts.front().job;
      if (!first.active() && !first.pending()) {
        show();
        return kExitDone;
      }
      if (first.active() && !watch_) {
        const size_t nodes = std::max<size_t>(expand_nodes(first.nodes).size(), 1);
        watch_ = std::make_unique<NodeWatch>(first.raw_id, nodes, every_s_);
      }
      collect(progress);
      show();
    }
  }

 private:
  void collect(Progress& progress) {
    if (!watch_ || !watch_->runs()) return wait_for(every_s_, progress);
    for (unsigned tenth = 0; tenth < 10 * every_s_ && watch_->runs(); ++tenth) {
      progress.check_stop();
      for (NodeUse& use : watch_->next(0.1)) {
        Seen& seen = nodes_[use.node];
        seen.before = std::exchange(seen.now, std::move(use));
        if (seen.before.node.empty()) seen.before = seen.now;
      }
    }
  }

  void show() {
    const Style style = Style::of_stdout();
    std::string text = job_report(report_, style);
    if (watch_ && !watch_->runs() && nodes_.empty()) {
      const std::string words = watch_->errors();
      text += fmt::format("\nnote: srun could not look at the nodes{}; the figures are sstat's\n",
                          words.empty() ? "" : ": " + printable(words));
    }
    if (report_.parts.front().job.active()) text += nodes_text(nodes_, style);
    // A terminal keeps one picture; a file gets them one after the other.
    print((::isatty(STDOUT_FILENO) != 0 ? "\x1b[H\x1b[2J" : "") + text + "\n");
  }

  std::string id_;
  unsigned every_s_;
  JobReport report_;
  double asked_ = 0;
  bool told_ = false;
  std::unique_ptr<NodeWatch> watch_;
  std::map<std::string, Seen> nodes_;
};

}  // namespace

int watch_job(const std::string& id, unsigned every_s, Progress& progress) {
  return Watch(id, every_s).run(progress);
}

int report_node(unsigned every_s, Progress& progress) {
  const std::string job = environment("SLURM_JOB_ID");
  if (job.empty()) {
    throw Error(ErrorKind::usage, "--here is for the nodes of a job: $SLURM_JOB_ID is not set");
  }
  while (!progress.stop) {  // by the end of the job, which is no failure
    print(to_line(look_at_node(job)));
    for (unsigned tenth = 0; tenth < 10 * every_s && !progress.stop; ++tenth)
      ::poll(nullptr, 0, 100);
  }
  return kExitDone;
}

}  // namespace stoker
