// SPDX-License-Identifier: Apache-2.0
#include "measure/live_steps.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "measure/run_summary.h"
#include "os/file_system.h"
#include "os/node.h"
#include "os/process_tree.h"

namespace stoker {
namespace {

constexpr size_t kMostRates = 24;
// Ranks write at different moments: the last word of each counts until it was silent for so long.
constexpr unsigned kSilent = 10;

}  // namespace

/// False where it brought no step of what the process trains with.
bool LiveSteps::take(Writer& writer, StepSeries added) {
  std::vector<StepSeries::Row> rows = std::move(added.rows);
  added.rows.clear();
  writer.about = std::move(added);
  writer.seconds.resize(writer.about.sources.size());
  writer.steps.resize(writer.about.sources.size());
  std::erase_if(rows, [](const auto& row) { return row.kind != StepSeries::Kind::step; });
  for (const StepSeries::Row& row : rows) {
    if (!writer.first) writer.first = row.end_s;
    writer.seconds[row.source] += row.duration_s();
    ++writer.steps[row.source];
  }
  const auto training = training_source(writer.about.sources, writer.seconds);
  if (!training) return false;
  writer.training = *training;
  std::erase_if(rows, [&](const auto& row) { return row.source != *training; });
  if (rows.empty()) return false;
  writer.samples = writer.stepped = writer.waited = writer.took = 0;
  for (const StepSeries::Row& row : rows) {
    writer.samples += static_cast<double>(row.samples);
    writer.stepped += 1;
    writer.waited += row.wait_s;
    writer.took += row.duration_s();
  }
  return writer.took > 0;
}

/// Those whose last steps make up the rate of now; the same choice as training_steps() makes.
std::vector<const LiveSteps::Writer*> LiveSteps::training_now() const {
  std::vector<const Writer*> found;
  for (const auto& [name, writer] : writers_) {
    if (writer.took <= 0 || writer.silent > kSilent) continue;
    if (writer.about.ended && writer.silent > 0) continue;
    found.push_back(&writer);
  }
  const auto process = [](const Writer* each) {
    return std::pair(each->about.host, each->about.pid);
  };
  const auto says_itself = [](const Writer* each) {
    return each->about.sources[each->training].by_script;
  };
  std::set<std::pair<std::string, int64_t>> say_so;
  for (const Writer* each : found) {
    if (says_itself(each)) say_so.insert(process(each));
  }
  std::erase_if(found, [&](const Writer* each) {
    return !says_itself(each) && say_so.contains(process(each));
  });
  double most = 0;
  for (const Writer* each : found) most = std::max(most, each->stepped / each->took);
  std::erase_if(found, [&](const Writer* each) { return 10 * each->stepped / each->took < most; });
  return found;
}

void LiveSteps::update(const RunInfo& info) {
  bool stepped = false;
  for (const DirectoryEntry& entry : real_file_system().list(info.directory)) {
    if (!entry.name.starts_with("steps-") || !entry.name.ends_with(".columns")) continue;
    Writer& writer = writers_[entry.name];
    ++writer.silent;
    try {
      const std::string path = info.directory + "/" + entry.name;
      if (!take(writer, read_new_steps(path, info, writer.file))) continue;
      writer.silent = 0;
      stepped = true;
    } catch (const Error&) {  // not written whole yet
    }
  }
  if (!stepped) return;
  double samples = 0;
  double steps = 0;
  double waited = 0;
  double took = 0;
  bool waits = true;
  steps_ = 0;
  for (const Writer* each : training_now()) {
    samples += each->samples / each->took;
    steps = std::max(steps, each->stepped / each->took);  // common to the ranks
    waited += each->waited;
    took += each->took;
    waits = waits && each->about.sources[each->training].waits;
    steps_ = std::max(steps_, each->steps[each->training]);
  }
  if (took <= 0) return;
  counts_samples_ = samples > 0;
  rates_.push_back(counts_samples_ ? samples : steps);
  if (rates_.size() > kMostRates) rates_.pop_front();
  wait_share_ = waits ? std::optional(waited / took) : std::nullopt;
}

bool LiveSteps::any_writer_left(const RunInfo& info) const {
  return std::any_of(writers_.begin(), writers_.end(), [&](const auto& each) {
    const Writer& writer = each.second;
    if (writer.about.ended) return false;
    if (writer.about.host != host_name()) return true;
    const int64_t since = writer.first
                              ? info.clock_begin_ns + static_cast<int64_t>(*writer.first * 1e9)
                              : monotonic_ns();
    return process_runs(static_cast<pid_t>(writer.about.pid), since);
  });
}

}  // namespace stoker
