// SPDX-License-Identifier: Apache-2.0
#include "cli/job_report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>

#include "base/text.h"
#include "base/units.h"
#include "os/node.h"
#include "slurm/text.h"
#include "slurm/words.h"

namespace stoker {
namespace {

std::string bytes(const std::optional<uint64_t>& value) { return value ? slurm_size(*value) : "-"; }
std::string count(const std::optional<uint64_t>& value) {
  return value ? format_count(*value) : "-";
}
std::string percent(const std::optional<double>& share) {
  return share ? fmt::format("{:.0f} %", 100 * *share) : "-";
}
std::string duration(const std::optional<double>& seconds) {
  if (!seconds) return "-";
  return std::isinf(*seconds) ? "no limit" : format_duration(*seconds);
}

std::string heading(const JobReport& report, const Style& style) {
  const SlurmJob& job = report.parts.front().job;
  const bool one = report.kind == "job";
  std::string text = style.bold(fmt::format("job {}", one ? job.id : job.family()));
  if (!job.name.empty()) text += fmt::format(" '{}'", printable(job.name));
  text += fmt::format(" of {}, partition {}", printable(job.user), printable(job.partition));
  if (!one) {
    text += report.kind == "array" ? ": an array of " : ": heterogeneous, with ";
    uint64_t parts = 0;
    for (const JobPart& part : report.parts) parts += array_tasks(part.job.id);
    return text + counted(parts, report.kind == "array" ? "task" : "component") + "\n";
  }
  text += fmt::format("\n{}: it {}", job.state, state_in_words(job.state));
  if (job.cancelled_by) text += " by " + user_in_words(*job.cancelled_by);
  if (const std::string exit = exit_in_words(job); !exit.empty()) text += ", " + exit;
  if (const std::string why = reason_in_words(job.reason); !why.empty()) text += ": " + why;
  text += "\n";
  if (job.pending() && job.start) {
    text += fmt::format("expected to start: {:%Y-%m-%d %H:%M}\n",
                        fmt::localtime(static_cast<std::time_t>(*job.start)));
  }
  return text;
}

std::string use_table(const SlurmJob& job, const JobUse& use, const Style& style) {
  const auto share = [](const std::optional<double>& value) { return percent(value); };
  std::vector<std::vector<std::string>> rows;
  rows.push_back(
      {"time", duration(job.limit_s), "", duration(job.elapsed_s), share(use.time_share)});
  rows.push_back({"nodes", count(job.asked.nodes), count(job.granted.nodes), "", ""});
  rows.push_back({"cores", count(job.asked.cores), count(job.granted.cores),
                  use.cores ? fmt::format("{:.1f}", *use.cores) : "-", share(use.cpu_share)});
  rows.push_back({"memory", bytes(job.asked.memory), bytes(job.granted.memory), bytes(use.memory),
                  share(use.memory_share)});
  if (job.asked.gpus.value_or(0) > 0 || job.granted.gpus.value_or(0) > 0) {
    rows.push_back({"GPUs", count(job.asked.gpus), count(job.granted.gpus),
                    use.gpu_memory ? bytes(use.gpu_memory) + " of their memory" : "not tracked",
                    share(use.gpu_busy)});
  }
  return table({{""},
                {"asked", true},
                {"granted", true},
                {job.active() ? "used so far" : "used", true},
                {"share", true}},
               rows, style);
}

std::string steps_table(const SlurmJob& job, const Style& style) {
  std::vector<std::vector<std::string>> rows;
  for (const SlurmStep& step : job.steps) {
    rows.push_back({printable(step.id), printable(step.state), printable(step.nodes),
                    count(step.tasks), duration(step.elapsed_s), duration(step.cpu_s),
                    bytes(step.memory), bytes(step.task_memory), printable(step.peak_node),
                    bytes(step.read), bytes(step.written)});
  }
  if (rows.empty()) return "";
  return "\n" + table({{"step"},
                       {"state"},
                       {"nodes"},
                       {"tasks", true},
                       {"took", true},
                       {"on cores", true},
                       {"memory", true},
                       {"largest task", true},
                       {"on"},
                       {"read", true},
                       {"written", true}},
                      rows, style);
}

/// The first ones: an array may have thousands of tasks.
std::string parts_table(const std::vector<JobPart>& parts, bool names, const Style& style) {
  constexpr size_t kMostRows = 50, kNameWidth = 24;
  std::vector<Column> columns = {{"job"},         {"state"},      {"nodes"},        {"took", true},
                                 {"cores", true}, {"busy", true}, {"memory", true}, {"used", true}};
  if (names) columns.push_back({"name"});
  std::vector<std::vector<std::string>> rows;
  for (const JobPart& part : parts) {
    if (rows.size() == kMostRows) break;
    rows.push_back({printable(part.job.id), printable(part.job.state), printable(part.job.nodes),
                    duration(part.job.elapsed_s), count(part.job.granted.cores),
                    percent(part.use.cpu_share), bytes(part.job.granted.memory),
                    percent(part.use.memory_share)});
    if (names) rows.back().push_back(shorten(printable(part.job.name), kNameWidth, style));
  }
  std::string text = table(columns, rows, style);
  if (parts.size() > rows.size()) {
    text += fmt::format("and {} more (--json has all)\n", format_count(parts.size() - rows.size()));
  }
  return text;
}

std::string findings_lines(const std::vector<JobFinding>& findings, const Style& style) {
  std::string text;
  for (size_t i = 0; i < findings.size(); ++i) {
    const JobFinding& finding = findings[i];
    text += finding.what + "\n";
    // One line may be for two findings.
    const bool again = i + 1 < findings.size() && findings[i + 1].line == finding.line;
    if (!finding.line.empty() && !again) text += "  " + style.bold(finding.line) + "\n";
  }
  return text.empty() ? "" : "\n" + text;
}

std::string run_lines(const JobRun& each) {
  const RunSummary& summary = each.summary;
  std::string text = fmt::format("\nstoker time {}\n", printable(each.run.info.directory));
  if (summary.samples_per_s) {
    text += fmt::format("  {:.4g} {}/s ({})", summary.samples_per_s->value,
                        summary.counts_samples ? "samples" : "steps",
                        range_text(*summary.samples_per_s,
                                   [](double value) { return fmt::format("{:.4g}", value); }));
    if (summary.wait_share)
      text += fmt::format(", {:.0f} % of the time waiting for data", 100 * *summary.wait_share);
    text += "\n";
  } else {
    text += "  no steps were seen\n";
  }
  for (const std::string& event : summary.events) text += "  " + printable(event) + "\n";
  const RunInfo& info = each.run.info;
  if (info.peak_memory > 0) {
    uint64_t cache = 0;
    for (const ResourceSample& sample : each.run.resources)
      cache = std::max(cache, sample.page_cache);
    text += fmt::format("  memory {} without the page cache, which came to {}\n",
                        slurm_size(info.peak_memory), cache > 0 ? slurm_size(cache) : "n/a");
  }
  return text;
}

}  // namespace

std::string job_report(const JobReport& report, const Style& style) {
  std::string text = heading(report, style);
  const JobPart& first = report.parts.front();
  if (report.use.wait_s) {
    text += fmt::format("in the queue{}: {}\n",
                        first.job.pending() ? " so far" : (report.kind == "job" ? "" : " at most"),
                        format_duration(*report.use.wait_s));
  }
  text += "\n";
  if (report.kind == "job") {
    text += use_table(first.job, first.use, style) + steps_table(first.job, style);
  } else {
    text += parts_table(report.parts, false, style);
    if (report.kind == "heterogeneous") {
      for (const JobPart& part : report.parts) {
        text += "\n" + style.bold(part.job.id) + "\n" + use_table(part.job, part.use, style) +
                steps_table(part.job, style);
      }
    }
    text += fmt::format("\nall of them: {} on cores, {} of what was granted; memory at most {}\n",
                        duration(report.use.cpu_s), percent(report.use.cpu_share),
                        bytes(report.use.memory));
  }
  for (const JobRun& run : report.runs) text += run_lines(run);
  text += findings_lines(report.findings, style);
  for (const std::string& note : report.notes) text += fmt::format("\nnote: {}\n", note);
  return text;
}

std::string user_jobs_report(const JobReport& report, const Style& style) {
  std::string text;
  if (report.parts.empty()) {
    text = "no jobs in these days (stoker job --days 30 looks further back)\n";
  } else {
    text = parts_table(report.parts, true, style);
    const JobPart& worst = report.parts.front();
    if (worst.wasted > 0) {
      text += fmt::format("\nnext: {}   what it asked for and did not use\n",
                          style.bold(fmt::format("stoker job {}", worst.job.id)));
    }
  }
  for (const std::string& note : report.notes) text += fmt::format("\nnote: {}\n", note);
  return text;
}

}  // namespace stoker
