// SPDX-License-Identifier: Apache-2.0
#include "measure/scale.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/parallel.h"
#include "base/text.h"
#include "measure/random.h"
#include "measure/time.h"
#include "os/directory_lock.h"
#include "os/output_file.h"
#include "os/own_place.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

constexpr int kSchema = 1;
constexpr uint64_t kMostPlanBytes = 1 << 24;

/// What must be the same for runs to be comparable.
Json identity_of(const ScaleOptions& options) {
  return {{"command", options.command}, {"axis", name_of(options.axis)},
          {"weak", options.weak},       {"pin", options.pin},
          {"hook", options.hook},       {"pattern", options.pattern}};
}

/// Runs are removed and logs overwritten there, so it must be ours: what another user had put into
/// it could lead elsewhere.
std::string make_directory(const ScaleOptions& options) {
  const std::string& wanted = options.directory;
  if (!wanted.empty()) {
    make_directories(fs::path(wanted).parent_path().string());
    if (::mkdir(wanted.c_str(), 0755) != 0 && errno != EEXIST) {
      throw system_error(wanted, "cannot create directory", errno);
    }
    if (const std::string why = why_not_mine(wanted); !why.empty()) {
      throw Error(
          ErrorKind::permission,
          fmt::format(
              "--output '{}': {}: another user could replace what is "
              "recorded there; take another directory, or `chmod go-w` it where it is yours",
              printable(wanted), why));
    }
    return wanted;
  }
  const OwnPlace place = make_own_place("scale");
  std::string note;
  const std::string made =
      make_run_directory(fmt::format("{}/{:%Y%m%d-%H%M%S}-{}", place.path,
                                     fmt::localtime(std::time(nullptr)), ::getpid()),
                         note);
  if (!place.instead.empty() && options.each_note) {
    options.each_note(
        fmt::format("the runs are recorded in {}: another user could replace them "
                    "here, because {}; --output DIR chooses a place",
                    printable(made), place.instead));
  }
  return made;
}

Json read_plan(const std::string& directory) {
  const std::string path = directory + "/plan.json";
  if (!fs::exists(path)) return nullptr;
  Json json = parse_json_or_discard(read_file(path, kMostPlanBytes));
  if (!json.is_object() || json.value("schema", 0) != kSchema || !json.contains("what") ||
      !json.contains("widths") || !json.contains("repeats") || !json.contains("seed")) {
    throw Error(
        ErrorKind::corrupt,
        fmt::format("{}: is no plan of stoker scale; take another --output", printable(path)));
  }
  return json;
}

/// Fills in how the run ended, where it did. False where it did not, or not well.
bool look_at(ScaleRun& run) {
  if (!fs::exists(run.directory + "/run.json")) return false;
  const Run read = read_run(run.directory);
  run.exit_status = read.info.exit_status;
  run.seconds = read.info.seconds;
  run.host = read.info.host;
  run.done = read.info.ended && read.info.exit_status == 0;
  const RunSummary summary = summarise(read);
  run.rate = told_rate(read, summary);
  run.counts_samples = summary.counts_samples;
  return run.done;
}

/// Each repeat goes through all widths once, in an order of its own: what changes slowly, such as a
/// neighbour or a cache, then meets every width alike, wherever a sweep is stopped.
std::vector<ScaleRun> ordered_runs(const ScaleOptions& options, const std::string& directory,
                                   uint64_t seed) {
  std::vector<ScaleRun> runs;
  for (uint64_t repeat = 1; repeat <= options.repeats; ++repeat) {
    Random random(seed + repeat * 0x9E3779B97F4A7C15u);
    std::vector<uint64_t> widths = options.widths;
    for (size_t i = widths.size(); i > 1; --i) std::swap(widths[i - 1], widths[random.below(i)]);
    for (const uint64_t n : widths) {
      ScaleRun run;
      run.n = n;
      run.repeat = repeat;
      run.directory = fmt::format("{}/n{}-r{}", directory, n, repeat);
      run.found = look_at(run);
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

uint64_t any_seed() {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return mix64(static_cast<uint64_t>(now) ^ static_cast<uint64_t>(::getpid())) >> 32;
}

void look_at_gpus(ScalePlan& plan) {
  if (plan.options.axis != ScaleAxis::gpus) return;
  plan.gpus = usable_gpus();
  const uint64_t most = plan.options.only.value_or(plan.options.widths.back());
  if (plan.gpus.empty() && std::getenv("CUDA_VISIBLE_DEVICES") == nullptr) {
    plan.remarks.push_back("No GPU was found here: whether the command used any is not known.");
  } else if (most > plan.gpus.size()) {
    throw Error(ErrorKind::usage,
                fmt::format("--gpus {}: only {} may be used here", most, plan.gpus.size()));
  }
}

void look_at_cores(ScalePlan& plan) {
  const ScaleAxis axis = plan.options.axis;
  if (axis != ScaleAxis::threads && axis != ScaleAxis::procs) return;
  std::vector<uint64_t> beyond;
  for (const uint64_t n : plan.options.widths) {
    if (cores_at(axis, n).empty()) beyond.push_back(n);
  }
  if (beyond.empty()) return;
  plan.remarks.push_back(fmt::format(
      "{} {}: more than the {} cores that may be used; they share them and are not pinned.",
      fmt::join(beyond, ", "), name_of(axis), usable_cores()));
}

void write_plan(const ScalePlan& plan) {
  Json json = {{"schema", kSchema},
               {"what", identity_of(plan.options)},
               {"widths", plan.options.widths},
               {"repeats", plan.options.repeats},
               {"seed", plan.seed}};
  json["order"] = Json::array();
  for (const ScaleRun& run : plan.runs) {
    json["order"].push_back(fs::path(run.directory).filename().string());
  }
  write_file(plan.options.directory + "/plan.json", as_bytes(json.dump(2) + "\n"));
}

/// A log of both streams, open to be written.
class Log {
 public:
  explicit Log(const std::string& path)
      : descriptor_(::open(
            path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) throw system_error(path, "cannot be made", errno);
  }
  ~Log() { ::close(descriptor_); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

void run_one(const ScalePlan& plan, ScaleRun& run) {
  const ScaleOptions& options = plan.options;
  fs::remove_all(run.directory);  // what was stopped in its midst, or failed
  const Log log(run.directory + ".log");
  TimeOptions time;
  time.command = command_at(options.command, options.axis, run.n);
  time.directory = run.directory;
  time.hook = options.hook;
  time.pattern = options.pattern;
  time.environment = environment_at(options.command, options.axis, run.n, plan.gpus);
  if (options.pin) time.cores = cores_at(options.axis, run.n);
  time.output = log.descriptor();
  time.each_note = options.each_note;
  const RunInfo info = time_command(time);
  if (info.asked_to_stop) {  // also where it ended well: it may have done less than its work
    fs::remove_all(run.directory);
    throw Error(ErrorKind::interrupted, "interrupted");
  }
  if (!info.trouble.empty()) throw Error(ErrorKind::io, info.trouble);
  look_at(run);
}

ScaleMeasure measure_of(const std::vector<ScaleRun>& runs) {
  bool samples = true;
  for (const ScaleRun& run : runs) {
    if (!run.done) continue;
    if (!run.rate) return ScaleMeasure::seconds;
    samples = samples && run.counts_samples;
  }
  return samples ? ScaleMeasure::samples_per_s : ScaleMeasure::steps_per_s;
}

double rate_of(const ScaleRun& run, ScaleMeasure measure, bool weak) {
  if (measure != ScaleMeasure::seconds) return run.rate->value;
  return (weak ? static_cast<double>(run.n) : 1) / run.seconds;
}

std::vector<ScaleWidth> widths_of(const ScalePlan& plan, const ScaleResult& result) {
  std::vector<ScaleWidth> widths;
  for (const Speedup& row : speedups(result.points)) {
    ScaleWidth width;
    width.n = static_cast<uint64_t>(row.units);
    width.rate = row.rate;
    width.speedup = row.speedup;
    width.percent_of_ideal = 100 * row.ideal;
    width.seconds = (plan.options.weak ? row.units : 1) / row.rate;
    std::vector<double> rates;
    for (const ScalingPoint& point : result.points) {
      if (point.units == row.units) rates.push_back(point.rate);
    }
    width.runs = rates.size();
    width.interval = runs_interval(rates);
    if (width.interval) width.interval->low = std::max(0.0, width.interval->low);
    for (const ScaleRun& run : result.runs) {
      if (width.interval || !run.done || run.n != width.n || !run.rate) continue;
      if (result.measure != ScaleMeasure::seconds && run.rate->low < run.rate->high) {
        width.interval = run.rate;
      }
    }
    widths.push_back(width);
  }
  return widths;
}

/// Each width is run by a job of its own, and one that fails ends no other.
void tell_what_is_missing(const ScalePlan& plan, ScaleResult& result) {
  for (const uint64_t n : plan.options.widths) {
    const auto counts = [&](bool done) {
      return std::count_if(plan.runs.begin(), plan.runs.end(),
                           [&](const ScaleRun& run) { return run.n == n && run.done == done; });
    };
    const auto failed = std::find_if(plan.runs.begin(), plan.runs.end(), [&](const ScaleRun& run) {
      return run.n == n && !run.done && run.exit_status != 0;
    });
    const ScaleAxis axis = plan.options.axis;
    const std::string width = fmt::format("{} {}", n, n == 1 ? unit_of(axis) : name_of(axis));
    if (failed != plan.runs.end()) {
      result.remarks.push_back(
          fmt::format("{} failed with exit status {}: {}.log has what was "
                      "written.",
                      width, failed->exit_status, printable(failed->directory)));
      if (result.runs.empty() && !result.failed) result.failed = *failed;
    } else if (counts(false) > 0) {
      result.remarks.push_back(fmt::format("{}: {} of {} runs {} not recorded.", width,
                                           counts(false), counts(true) + counts(false),
                                           counts(false) == 1 ? "was" : "were"));
    }
  }
}

}  // namespace

std::optional<Interval> told_rate(const Run& run, const RunSummary& summary) {
  if (summary.samples_per_s || summary.source != "--pattern") return summary.samples_per_s;
  for (const auto& [time, value] : run.values) {
    if (value > 0 && std::isfinite(value)) return Interval{value, value, value};
  }
  return std::nullopt;
}

ScalePlan plan_scale(const ScaleOptions& options) {
  ScalePlan plan;
  plan.options = options;
  std::vector<uint64_t>& widths = plan.options.widths;
  // A command that cannot be launched at a width is said before anything is made.
  for (const uint64_t n : widths) command_at(options.command, options.axis, n);
  std::sort(widths.begin(), widths.end());
  look_at_gpus(plan);
  plan.options.directory = make_directory(options);
  const std::string& directory = plan.options.directory;
  const DirectoryLock lock(directory,
                           options.only ? DirectoryLock::Wait::yes : DirectoryLock::Wait::no);
  const Json before = read_plan(directory);
  plan.seed =
      options.seed.value_or(before.is_null() ? any_seed() : checked<uint64_t>(before["seed"]));
  if (before.is_null() && !fs::is_empty(directory)) {
    throw Error(ErrorKind::usage,
                fmt::format("--output '{}': has other things in it; name a new directory",
                            printable(directory)));
  }
  if (!before.is_null()) {
    std::set<uint64_t> all(widths.begin(), widths.end());
    for (const Json& n : before["widths"]) all.insert(checked<uint64_t>(n));
    const bool same = before["what"] == identity_of(options);
    ScaleOptions both = plan.options;
    both.widths.assign(all.begin(), all.end());
    both.repeats = std::max(options.repeats, checked<uint64_t>(before["repeats"]));
    const std::vector<ScaleRun> runs = ordered_runs(both, directory, plan.seed);
    const bool some =
        std::any_of(runs.begin(), runs.end(), [](const auto& run) { return run.done; });
    if (!same && some) {
      throw Error(
          ErrorKind::usage,
          fmt::format("--output '{}': holds runs of another sweep ({}); name a new directory",
                      printable(directory), printable(before["what"].dump())));
    }
    if (same) plan.options = both;
  }
  plan.runs = ordered_runs(plan.options, directory, plan.seed);
  look_at_cores(plan);
  write_plan(plan);
  return plan;
}

ScaleResult run_scale(ScalePlan plan, const Progress& progress) {
  const ScaleOptions& options = plan.options;
  std::optional<DirectoryLock> lock;
  if (!options.only) lock.emplace(options.directory);
  for (size_t i = 0; i < plan.runs.size(); ++i) {
    ScaleRun& run = plan.runs[i];
    if (run.done || run.n != options.only.value_or(run.n)) continue;
    progress.check_stop();
    if (options.each_begin) options.each_begin(run, i + 1, plan.runs.size());
    run_one(plan, run);
    if (options.each_end) options.each_end(run, i + 1, plan.runs.size());
    if (run.done) continue;
    ScaleResult result = scale_result(plan);
    result.failed = run;
    return result;
  }
  return scale_result(plan);
}

ScaleResult scale_result(const ScalePlan& plan) {
  ScaleResult result;
  result.directory = plan.options.directory;
  result.remarks = plan.remarks;
  std::set<std::string> hosts;
  for (const ScaleRun& run : plan.runs) {
    if (!run.done) continue;
    result.runs.push_back(run);
    hosts.insert(run.host);
  }
  result.measure = measure_of(result.runs);
  for (const ScaleRun& run : result.runs) {
    result.points.push_back(
        {static_cast<double>(run.n), rate_of(run, result.measure, plan.options.weak)});
  }
  result.widths = widths_of(plan, result);
  if (!result.widths.empty() && result.widths.front().n > 1) {
    result.remarks.push_back(fmt::format("1 {} was not measured: it is taken to be a share of {}.",
                                         unit_of(plan.options.axis), result.widths.front().n));
  }
  if (plan.options.only == 0) tell_what_is_missing(plan, result);
  if (hosts.size() > 1) {
    result.remarks.push_back(fmt::format("The runs are of different hosts, which may differ: {}.",
                                         fmt::join(hosts, ", ")));
  }
  return result;
}

}  // namespace stoker
