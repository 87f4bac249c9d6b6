// SPDX-License-Identifier: Apache-2.0
#include "results/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "os/file_system.h"
#include "os/output_file.h"
#include "results/column_file.h"

namespace stoker {
namespace {

constexpr int kSchema = 1;
constexpr double kNano = 1e-9;

/// Columns that are stored as they are, and those in billionths.
struct ResourceColumn {
  const char* name;
  double ResourceSample::*seconds = nullptr;
  uint64_t ResourceSample::*count = nullptr;
};

constexpr ResourceColumn kColumns[] = {
    {"time_ns", &ResourceSample::time_s, nullptr},
    {"cpu_ns", &ResourceSample::cpu_s, nullptr},
    {"anonymous_bytes", nullptr, &ResourceSample::anonymous},
    {"shared_bytes", nullptr, &ResourceSample::shared},
    {"mapped_bytes", nullptr, &ResourceSample::mapped},
    {"page_cache_bytes", nullptr, &ResourceSample::page_cache},
    {"threads", nullptr, &ResourceSample::threads},
    {"processes", nullptr, &ResourceSample::processes},
    {"context_switches", nullptr, &ResourceSample::context_switches},
    {"read_calls_bytes", nullptr, &ResourceSample::read_calls_bytes},
    {"read_disk_bytes", nullptr, &ResourceSample::read_disk_bytes},
    {"write_disk_bytes", nullptr, &ResourceSample::write_disk_bytes},
    {"gpu_busy_billionths", &ResourceSample::gpu_busy, nullptr},
    {"gpu_memory_bytes", nullptr, &ResourceSample::gpu_memory},
};

template <typename T>
void take(const Json& json, const char* name, T& value) {
  const auto found = json.find(name);
  if (found != json.end() && !found->is_null()) value = checked<T>(*found);
}

Json to_json(const RunInfo& info) {
  Json json;
  json["schema"] = kSchema;
  json["stoker"] = info.version;
  json["command"] = info.command;
  json["host"] = info.host;
  json["pid"] = info.pid;
  json["started"] = info.started;
  json["cores"] = info.cores;
  json["memory_limit_bytes"] = info.memory_limit;
  json["slurm_job"] = info.slurm_job;
  json["visible_gpus"] = info.visible_gpus;
  json["clock_begin_ns"] = info.clock_begin_ns;
  json["time_of_day_begin_ns"] = info.time_of_day_begin_ns;
  json["ended"] = info.ended;
  if (!info.ended) return json;
  json["seconds"] = info.seconds;
  json["exit_status"] = info.exit_status;
  json["signal"] = info.signal;
  json["cpu_seconds"] = info.cpu_s;
  json["peak_memory_bytes"] = info.peak_memory;
  json["peak_anonymous_bytes"] = info.peak_anonymous;
  json["peak_shared_bytes"] = info.peak_shared;
  json["peak_mapped_bytes"] = info.peak_mapped;
  json["read_bytes"] = info.read_calls_bytes;
  json["read_disk_bytes"] = info.read_disk_bytes;
  json["write_disk_bytes"] = info.write_disk_bytes;
  json["left_running"] = info.left_running;
  json["sampling_cpu_seconds"] = info.sampling_cpu_s;
  json["trouble"] = info.trouble;
  return json;
}

RunInfo info_from(const std::string& directory) {
  const std::string path = directory + "/run.json";
  const std::string text = read_file(path, 16 << 20);
  RunInfo info;
  info.directory = directory;
  try {
    const Json json = parse_json(text);
    if (checked<int>(json.at("schema")) != kSchema) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("{}: was written by another version of stoker", printable(path)));
    }
    take(json, "stoker", info.version);
    take(json, "command", info.command);
    take(json, "host", info.host);
    take(json, "pid", info.pid);
    take(json, "started", info.started);
    take(json, "cores", info.cores);
    take(json, "memory_limit_bytes", info.memory_limit);
    take(json, "slurm_job", info.slurm_job);
    take(json, "visible_gpus", info.visible_gpus);
    take(json, "clock_begin_ns", info.clock_begin_ns);
    take(json, "time_of_day_begin_ns", info.time_of_day_begin_ns);
    take(json, "ended", info.ended);
    take(json, "seconds", info.seconds);
    take(json, "exit_status", info.exit_status);
    take(json, "signal", info.signal);
    take(json, "cpu_seconds", info.cpu_s);
    take(json, "peak_memory_bytes", info.peak_memory);
    take(json, "peak_anonymous_bytes", info.peak_anonymous);
    take(json, "peak_shared_bytes", info.peak_shared);
    take(json, "peak_mapped_bytes", info.peak_mapped);
    take(json, "read_bytes", info.read_calls_bytes);
    take(json, "read_disk_bytes", info.read_disk_bytes);
    take(json, "write_disk_bytes", info.write_disk_bytes);
    take(json, "left_running", info.left_running);
    take(json, "sampling_cpu_seconds", info.sampling_cpu_s);
    take(json, "trouble", info.trouble);
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: cannot be read: {}", printable(path), printable(error.what())));
  }
  return info;
}

/// A column, or zeros where a file lacks it.
const std::vector<int64_t>& column(ColumnTable& table, const std::string& name) {
  std::vector<int64_t>& found = table.integers[name];
  found.resize(table.rows);
  return found;
}

Json about(const ColumnTable& table, const std::string& name) {
  const auto found = table.about.find(name);
  return found == table.about.end() ? Json() : parse_json(found->second);
}

template <typename T>
T about_or(const ColumnTable& table, const std::string& name, T otherwise) {
  try {
    const Json value = about(table, name);
    return value.is_null() ? otherwise : checked<T>(value);
  } catch (const Json::exception&) {
    return otherwise;
  }
}

std::vector<StepSource> sources_of(const ColumnTable& table) {
  std::vector<StepSource> sources;
  const Json loaders = about(table, "loaders");
  if (!loaders.is_array()) return sources;
  for (const Json& each : loaders) {
    StepSource& source = sources.emplace_back();
    if (!each.is_object()) continue;
    source.name = each.value("name", "");
    source.training = each.value("training", true);
    source.by_script = each.value("explicit", false);
    source.waits = each.value("waits", true);
  }
  return sources;
}

/// a - b; 0 where no clock can be that far from another.
int64_t difference(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_sub_overflow(a, b, &result) ? 0 : result;
}

StepSeries steps_from(ColumnTable& table, const RunInfo& info) {
  StepSeries series;
  series.host = about_or<std::string>(table, "host", "");
  series.pid = about_or<int64_t>(table, "pid", 0);
  series.rank = about_or<uint32_t>(table, "rank", 0);
  series.world = about_or<uint32_t>(table, "world", 1);
  series.ended = about_or<bool>(table, "ended", false);
  series.sources = sources_of(table);
  // Hosts agree about the time of day at best: each process says how far its clock is from it.
  const auto offset = about_or<int64_t>(table, "time_of_day_ns", 0);
  const int64_t begin = series.host == info.host || offset == 0
                            ? info.clock_begin_ns
                            : difference(info.time_of_day_begin_ns, offset);
  const auto& loader = column(table, "loader");
  const auto& epoch = column(table, "epoch");
  const auto& kind = column(table, "kind");
  const auto& end = column(table, "end_ns");
  const auto& wait = column(table, "wait_ns");
  const auto& step = column(table, "step_ns");
  const auto& samples = column(table, "samples");
  const auto& gpu = column(table, "gpu_ns");
  for (size_t i = 0; i < table.rows; ++i) {
    if (loader[i] < 0 || kind[i] < 0 || kind[i] > 2 || samples[i] < 0) continue;
    StepSeries::Row row;
    row.source = static_cast<uint32_t>(loader[i]);
    row.epoch = static_cast<uint32_t>(std::max<int64_t>(epoch[i], 0));
    row.kind = static_cast<StepSeries::Kind>(kind[i]);
    row.end_s = static_cast<double>(difference(end[i], begin)) * kNano;
    row.wait_s = static_cast<double>(std::max<int64_t>(wait[i], 0)) * kNano;
    row.step_s = static_cast<double>(std::max<int64_t>(step[i], 0)) * kNano;
    row.gpu_s = gpu[i] < 0 ? -1 : static_cast<double>(gpu[i]) * kNano;
    row.samples = static_cast<uint64_t>(samples[i]);
    while (series.sources.size() <= std::min<uint32_t>(row.source, 10'000)) {
      series.sources.push_back({"unnamed"});
    }
    if (row.source < series.sources.size()) series.rows.push_back(row);
  }
  return series;
}

std::vector<ResourceSample> resources_from(ColumnTable& table) {
  std::vector<ResourceSample> samples(table.rows);
  for (const ResourceColumn& each : kColumns) {
    const auto& values = column(table, each.name);
    for (size_t i = 0; i < table.rows; ++i) {
      if (each.seconds != nullptr) {
        samples[i].*each.seconds = static_cast<double>(values[i]) * kNano;
      } else {
        samples[i].*each.count = static_cast<uint64_t>(std::max<int64_t>(values[i], 0));
      }
    }
  }
  return samples;
}

/// The new rows, with everything that the file has said about itself.
ColumnTable read_more(const std::string& path, GrowingFile& file) {
  ColumnTable table = read_new_columns(path, file.offset);
  for (auto& [name, value] : table.about) file.about[name] = std::move(value);
  table.about = file.about;
  return table;
}

}  // namespace

const std::vector<std::string>& resource_columns() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const ResourceColumn& each : kColumns) all.emplace_back(each.name);
    return all;
  }();
  return names;
}

std::vector<int64_t> resource_values(const ResourceSample& sample) {
  std::vector<int64_t> values;
  for (const ResourceColumn& each : kColumns) {
    values.push_back(each.seconds != nullptr
                         ? static_cast<int64_t>(std::llround(sample.*each.seconds / kNano))
                         : static_cast<int64_t>(sample.*each.count));
  }
  return values;
}

void write_run_info(const RunInfo& info) {
  const std::string text = to_json(info).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  write_file(info.directory + "/run.json", as_bytes(text));
}

RunInfo read_run_info(const std::string& directory) {
  if (!real_file_system().info(directory + "/run.json", true)) {
    throw Error(ErrorKind::not_found,
                fmt::format("{}: is no run directory (it has no run.json)", printable(directory)));
  }
  return info_from(directory);
}

StepSeries read_new_steps(const std::string& path, const RunInfo& info, GrowingFile& file) {
  ColumnTable table = read_more(path, file);
  return steps_from(table, info);
}

std::vector<ResourceSample> read_new_resources(const std::string& path, GrowingFile& file) {
  ColumnTable table = read_more(path, file);
  return resources_from(table);
}

Run read_run(const std::string& directory) {
  Run run;
  run.info = read_run_info(directory);
  for (const DirectoryEntry& entry : real_file_system().list(directory)) {
    if (!entry.name.ends_with(".columns")) continue;
    try {
      ColumnTable table = read_columns(directory + "/" + entry.name);
      for (const ColumnDamage& damage : table.damage) {
        run.damage.push_back(
            fmt::format("{}: offset {}: {}", printable(entry.name), damage.offset, damage.cause));
      }
      if (entry.name == "resources.columns") {
        run.resources = resources_from(table);
      } else if (entry.name == "values.columns") {
        const auto& times = column(table, "time_ns");
        std::vector<double>& values = table.reals["value"];
        values.resize(table.rows);
        for (size_t i = 0; i < table.rows; ++i) {
          run.values.emplace_back(static_cast<double>(times[i]) * kNano, values[i]);
        }
      } else {
        StepSeries series = steps_from(table, run.info);
        series.file = entry.name;
        run.steps.push_back(std::move(series));
      }
    } catch (const std::exception& error) {
      run.damage.push_back(printable(error.what()));
    }
  }
  std::sort(run.steps.begin(), run.steps.end(), [](const StepSeries& a, const StepSeries& b) {
    return std::tie(a.rank, a.file) < std::tie(b.rank, b.file);
  });
  return run;
}

}  // namespace stoker
