// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"

namespace stoker {

// A run directory, described in docs/formats/run.md:
//
//   run.json              what was run, where, and how it ended
//   steps-HOST-PID.columns  the steps of each process that had any
//   resources.columns     what the process tree used, some times a second
//   values.columns        numbers that --pattern found in the output

/// Something iterated over, or marked, in one process.
struct StepSource {
  std::string name;
  bool training = true;    // not under torch.no_grad(), no checkpoint
  bool by_script = false;  // the script says itself what its steps are
  bool waits = true;       // waiting for data can be told from the step
};

/// The steps of one process, in their order. Times in seconds; `end_s` counts from the run's begin.
struct StepSeries {
  std::string file, host;
  int64_t pid = 0;
  uint32_t rank = 0, world = 1;
  bool ended = false;  // its process says that nothing more comes
  std::vector<StepSource> sources;
  enum class Kind : uint8_t { step, end_of_epoch, mark };
  struct Row {
    uint32_t source = 0;
    uint32_t epoch = 0;
    Kind kind = Kind::step;
    double end_s = 0, wait_s = 0, step_s = 0;
    double gpu_s = -1;  // not known
    uint64_t samples = 0;

    double begin_s() const { return end_s - step_s - wait_s; }
    double duration_s() const { return step_s + wait_s; }
  };
  std::vector<Row> rows;
};

/// What the process tree used at one moment; sums count from the begin.
struct ResourceSample {
  double time_s = 0;
  double cpu_s = 0;
  uint64_t anonymous = 0, shared = 0, mapped = 0;
  uint64_t page_cache = 0;  // of the whole cgroup
  uint64_t threads = 0, processes = 0, context_switches = 0;
  uint64_t read_calls_bytes = 0, read_disk_bytes = 0, write_disk_bytes = 0;
  double gpu_busy = -1;  // share of the time, mean of the GPUs; not known
  uint64_t gpu_memory = 0;

  uint64_t memory() const { return anonymous + shared + mapped; }
};

/// What run.json says. What is not known yet, or never was, is nothing.
struct RunInfo {
  std::vector<std::string> command;
  std::string directory, host, started, version;
  int64_t pid = 0;  // of the process that made the directory; 0: not known
  uint32_t cores = 0;
  uint64_t memory_limit = 0;
  std::string slurm_job;
  std::string visible_gpus;    // CUDA_VISIBLE_DEVICES
  int64_t clock_begin_ns = 0;  // of the monotonic clock, and of the time of day
  int64_t time_of_day_begin_ns = 0;

  bool ended = false;
  double seconds = 0;
  int exit_status = 0;
  int signal = 0;
  bool asked_to_stop = false;  // by a signal, whatever it made of it; not in run.json
  double cpu_s = 0;
  uint64_t peak_memory = 0, peak_anonymous = 0, peak_shared = 0, peak_mapped = 0;
  uint64_t read_calls_bytes = 0, read_disk_bytes = 0, write_disk_bytes = 0;
  uint64_t left_running = 0;  // processes that went on by themselves
  double sampling_cpu_s = 0;  // what measuring took
  std::string trouble;        // why something could not be recorded
};

struct Run {
  RunInfo info;
  std::vector<StepSeries> steps;
  std::vector<ResourceSample> resources;
  std::vector<std::pair<double, double>> values;  // when, what
  std::vector<std::string> damage;                // what could not be read, and where
};

void write_run_info(const RunInfo& info);
/// Throws Error(not_found) where there is no run; what is damaged in it is named in the result.
Run read_run(const std::string& directory);

/// What run.json alone says; throws like read_run().
RunInfo read_run_info(const std::string& directory);
/// How far a file of a run that still grows has been read, and what it has said about itself.
struct GrowingFile {
  uint64_t offset = 0;
  std::map<std::string, std::string> about;  // values as JSON text
};
/// What was added since the last call; throws Error where it cannot be read.
StepSeries read_new_steps(const std::string& path, const RunInfo& info, GrowingFile& file);
std::vector<ResourceSample> read_new_resources(const std::string& path, GrowingFile& file);

/// The names of the columns of resources.columns, in the order of resource_values().
const std::vector<std::string>& resource_columns();
std::vector<int64_t> resource_values(const ResourceSample& sample);

}  // namespace stoker
