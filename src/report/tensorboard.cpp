// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/text.h"
#include "os/output_file.h"
#include "report/report.h"
#include "report/series.h"

namespace stoker {
namespace {

// An event file is a sequence of records, little-endian:
//
//   length   u64, then the masked CRC-32C of these eight bytes
//   event    a tensorflow.Event, then its masked CRC-32C
//
// The first event says that it is such a file. A scalar is a simple_value: every TensorBoard reads
// it.

template <typename T>
void put(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_tag(std::string& out, unsigned field, Wire wire) {
  put_varint(out, field << 3 | static_cast<unsigned>(wire));
}

void put_bytes(std::string& out, unsigned field, std::string_view bytes) {
  put_tag(out, field, Wire::bytes);
  put_varint(out, bytes.size());
  out += bytes;
}

struct Scalar {
  std::string_view tag;
  double value;
};

/// What is known at one moment of a run.
struct Moment {
  double time_s = 0;
  int64_t step = 0;
  std::vector<Scalar> scalars;
};

std::string event_of(const Moment& moment, double begin_s) {
  std::string summary;
  for (const Scalar& scalar : moment.scalars) {
    std::string value;
    put_bytes(value, 1, scalar.tag);
    put_tag(value, 2, Wire::fixed32);
    put(value, static_cast<float>(scalar.value));
    put_bytes(summary, 1, value);
  }
  std::string event;
  put_tag(event, 1, Wire::fixed64);
  put(event, begin_s + moment.time_s);
  put_tag(event, 2, Wire::varint);
  put_varint(event, static_cast<uint64_t>(moment.step));
  put_bytes(event, 5, summary);
  return event;
}

void put_record(std::string& out, const std::string& event) {
  std::string length;
  put(length, static_cast<uint64_t>(event.size()));
  out += length;
  put(out, crc32c_mask(crc32c(as_bytes(length))));
  out += event;
  put(out, crc32c_mask(crc32c(as_bytes(event))));
}

std::vector<Moment> moments_of(const ReportedRun& run) {
  std::vector<Moment> moments;
  const std::vector<ReportedStep> steps = steps_of(run);
  const std::string_view rate_tag =
      run.summary.counts_samples ? "training/samples_per_s" : "training/steps_per_s";
  for (size_t i = 0; i < steps.size(); ++i) {
    Moment& moment = moments.emplace_back();
    moment.time_s = steps[i].end_s;
    moment.step = static_cast<int64_t>(i + 1);
    moment.scalars = {{rate_tag, steps[i].rate}};
    if (run.summary.source != "--pattern") {
      moment.scalars.push_back({"training/step_s", steps[i].seconds});
    }
    if (steps[i].wait_share >= 0) {
      moment.scalars.push_back({"training/wait_share", steps[i].wait_share});
    }
  }
  // Looks carry the number of the last step behind them; without steps they count themselves.
  size_t done = 0;
  int64_t looks = 0;
  for (const ReportedUse& use : uses_of(run.run)) {
    while (done < steps.size() && steps[done].end_s <= use.time_s) ++done;
    Moment& moment = moments.emplace_back();
    moment.time_s = use.time_s;
    moment.step = steps.empty() ? ++looks : static_cast<int64_t>(done);
    moment.scalars = {{"resources/cpu_cores", use.cores},
                      {"resources/memory_bytes", static_cast<double>(use.sample->memory())}};
    if (use.sample->gpu_busy >= 0) {
      moment.scalars.push_back({"resources/gpu_busy", use.sample->gpu_busy});
    }
  }
  std::stable_sort(moments.begin(), moments.end(),
                   [](const Moment& a, const Moment& b) { return a.time_s < b.time_s; });
  return moments;
}

/// What TensorBoard calls the run: the last part of its path, or with a number where two have it.
std::string directory_name(const ReportedRun& run, std::set<std::string>& taken) {
  std::filesystem::path path(run.name);
  path = path.lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  std::string name = percent_escape(path.filename().string());
  if (name.empty() || name.front() == '.') name = "run" + name;
  std::string free = name;
  for (int i = 2; !taken.insert(free).second; ++i) free = fmt::format("{}-{}", name, i);
  return free;
}

}  // namespace

uint64_t write_tensorboard(const Report& report, const std::string& directory) {
  uint64_t written = 0;
  std::set<std::string> taken;
  for (const ReportedRun& run : report.runs) {
    const RunInfo& info = run.run.info;
    const double begin_s = static_cast<double>(info.time_of_day_begin_ns) * 1e-9;
    std::string version;
    put_tag(version, 1, Wire::fixed64);
    put(version, begin_s);
    put_bytes(version, 3, "brain.Event:2");
    std::string file;
    put_record(file, version);
    for (const Moment& moment : moments_of(run)) put_record(file, event_of(moment, begin_s));
    const std::string below = directory + "/" + directory_name(run, taken);
    make_directories(below);
    const std::string path =
        fmt::format("{}/events.out.tfevents.{:010d}.{}.0.0", below,
                    info.time_of_day_begin_ns / 1'000'000'000, percent_escape(info.host, "/"));
    write_file(path, as_bytes(file));
    written += file.size();
  }
  return written;
}

}  // namespace stoker
