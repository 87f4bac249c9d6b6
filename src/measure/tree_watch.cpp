// SPDX-License-Identifier: Apache-2.0
#include "measure/tree_watch.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "os/node.h"

namespace stoker {
namespace {

// A look may take this share of a core, and one that divides shared memory the same again.
constexpr double kShare = 0.002;
constexpr double kFlushSeconds = 1;
constexpr double kGpuSeconds = 0.5;
constexpr uint64_t kWorthExact = 64 << 20;

double to_seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

rusage ended_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return usage;
}

double cpu_of(const rusage& usage) {
  return to_seconds(usage.ru_utime) + to_seconds(usage.ru_stime);
}

}  // namespace

TreeWatch::TreeWatch(pid_t root, bool below_us, double interval_s, const RunInfo& info)
    : root_(root),
      below_us_(below_us),
      interval_s_(interval_s),
      visible_gpus_(info.visible_gpus),
      begin_ns_(info.clock_begin_ns),
      ended_cpu_before_(cpu_of(ended_children())),
      ended_io_before_(io_of_ended_children()),
      writer_(std::make_unique<ColumnWriter>(info.directory + "/resources.columns",
                                             resource_columns(), std::vector<std::string>())) {
  const rusage ended = ended_children();
  ended_switches_before_ = static_cast<uint64_t>(ended.ru_nvcsw + ended.ru_nivcsw);
  if (!below_us_) return;
  for (const ProcessUse& use : tree_.look(root_, false)) not_ours_.insert(use.pid);
}

void TreeWatch::take_processes(bool exact) {
  processes_ = tree_.look(root_, exact);
  std::erase_if(processes_, [&](const ProcessUse& use) { return not_ours_.contains(use.pid); });
}

double TreeWatch::seconds_since_begin() const {
  return static_cast<double>(monotonic_ns() - begin_ns_) * 1e-9;
}

void TreeWatch::measure_memory(ResourceSample& sample, bool exact) {
  for (const ProcessUse& use : processes_) {
    sample.anonymous += use.anonymous;
    sample.shared += use.shared;
    sample.mapped += use.mapped;
  }
  if (exact || processes_.size() < 2) return;
  const auto scale = [&](uint64_t& bytes) {
    bytes = static_cast<uint64_t>(static_cast<double>(bytes) * exact_share_);
  };
  scale(sample.anonymous);
  scale(sample.shared);
  scale(sample.mapped);
}

/// What children that are gone have used: the kernel adds it to whoever waits for them.
void TreeWatch::add_ended(ResourceSample& sample) const {
  if (!below_us_) return;
  const rusage ended = ended_children();
  sample.cpu_s += cpu_of(ended) - ended_cpu_before_;
  sample.context_switches +=
      static_cast<uint64_t>(ended.ru_nvcsw + ended.ru_nivcsw) - ended_switches_before_;
  const ChildrenIo io = io_of_ended_children();
  const auto since = [](uint64_t now, uint64_t before) { return now > before ? now - before : 0; };
  sample.read_calls_bytes += since(io.read_calls_bytes, ended_io_before_.read_calls_bytes);
  sample.read_disk_bytes += since(io.read_disk_bytes, ended_io_before_.read_disk_bytes);
  sample.write_disk_bytes += since(io.write_disk_bytes, ended_io_before_.write_disk_bytes);
}

const ResourceSample& TreeWatch::look() {
  const int64_t cpu_before = thread_cpu_ns();
  const double now = seconds_since_begin();
  const bool exact = now >= next_exact_s_ && processes_.size() > 1 && last_.memory() > kWorthExact;
  uint64_t resident = 0;
  if (exact) {
    for (const ProcessUse& use : tree_.look(root_, false)) {
      if (!not_ours_.contains(use.pid)) resident += use.anonymous + use.shared + use.mapped;
    }
  }
  take_processes(exact);
  ResourceSample sample;
  sample.time_s = now;
  sample.processes = processes_.size();
  for (const ProcessUse& use : processes_) {
    sample.cpu_s += use.cpu_s;
    sample.threads += use.threads;
    sample.context_switches += use.context_switches;
    sample.read_calls_bytes += use.read_calls_bytes;
    sample.read_disk_bytes += use.read_disk_bytes;
    sample.write_disk_bytes += use.write_disk_bytes;
  }
  add_ended(sample);
  if (!below_us_) {
    // What it used before we came is not of this run.
    if (!first_) first_ = sample;
    const auto since = [](uint64_t now, uint64_t before) {
      return now > before ? now - before : 0;
    };
    sample.cpu_s = std::max(0.0, sample.cpu_s - first_->cpu_s);
    sample.context_switches = since(sample.context_switches, first_->context_switches);
    sample.read_calls_bytes = since(sample.read_calls_bytes, first_->read_calls_bytes);
    sample.read_disk_bytes = since(sample.read_disk_bytes, first_->read_disk_bytes);
    sample.write_disk_bytes = since(sample.write_disk_bytes, first_->write_disk_bytes);
  }
  measure_memory(sample, exact);
  if (exact && resident > 0) {
    exact_share_ =
        std::min(1.0, static_cast<double>(sample.memory()) / static_cast<double>(resident));
  }
  sample.page_cache = cgroup_memory().page_cache;
  sample.gpu_busy = last_.gpu_busy;
  if (now >= next_gpu_s_) {
    gpus_ = gpu_watch_.look(visible_gpus_);
    next_gpu_s_ = gpus_.empty() ? now + 3600 : now + kGpuSeconds;
    sample.gpu_busy = gpus_.empty() ? -1 : 0;
    for (const GpuUse& gpu : gpus_) sample.gpu_busy += gpu.busy / static_cast<double>(gpus_.size());
  }
  for (const GpuUse& gpu : gpus_) sample.gpu_memory += gpu.used_bytes;

  // A process that ended between two looks takes its sums with it until its parent waits for it.
  sample.cpu_s = std::max(sample.cpu_s, last_.cpu_s);
  if (sample.memory() >= peak_.memory()) peak_ = sample;
  last_ = sample;
  writer_->add(resource_values(sample).data(), nullptr);
  if (now >= next_flush_s_) {
    writer_->flush();
    next_flush_s_ = now + kFlushSeconds;
  }
  const double cost = static_cast<double>(thread_cpu_ns() - cpu_before) * 1e-9;
  cost_s_ += cost;
  next_s_ = now + std::max(interval_s_, exact ? interval_s_ : cost / kShare);
  if (exact) next_exact_s_ = now + std::max(1.0, cost / kShare);
  return last_;
}

void TreeWatch::finish(RunInfo& info, uint64_t largest) {
  ResourceSample sample;
  sample.time_s = seconds_since_begin();
  // Who went on by himself still counts with what he has used until now.
  take_processes(false);
  for (const ProcessUse& use : processes_) {
    sample.cpu_s += use.cpu_s;
    sample.read_calls_bytes += use.read_calls_bytes;
    sample.read_disk_bytes += use.read_disk_bytes;
    sample.write_disk_bytes += use.write_disk_bytes;
  }
  add_ended(sample);
  if (!below_us_) sample = last_;
  info.left_running = below_us_ ? processes_.size() : 0;
  info.seconds = seconds_since_begin();
  info.cpu_s = sample.cpu_s;
  info.read_calls_bytes = std::max(sample.read_calls_bytes, last_.read_calls_bytes);
  info.read_disk_bytes = std::max(sample.read_disk_bytes, last_.read_disk_bytes);
  info.write_disk_bytes = std::max(sample.write_disk_bytes, last_.write_disk_bytes);
  info.peak_anonymous = peak_.anonymous;
  info.peak_shared = peak_.shared;
  info.peak_mapped = peak_.mapped;
  info.peak_memory = std::max(peak_.memory(), largest);
  info.sampling_cpu_s = cost_s_;
  writer_->flush();
  if (!writer_->failure().empty()) {
    info.trouble = "what the processes used is recorded in part: " + writer_->failure();
  }
}

}  // namespace stoker
