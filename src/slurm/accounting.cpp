// SPDX-License-Identifier: Apache-2.0
#include "slurm/accounting.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <span>
#include <sstream>

#include "slurm/text.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, 34> kAccountingColumns = {
    "JobID",        "JobIDRaw",       "User",           "Partition",       "State",
    "ExitCode",     "Submit",         "Eligible",       "Start",           "End",
    "ElapsedRaw",   "Elapsed",        "TimelimitRaw",   "Timelimit",       "NNodes",
    "AllocNodes",   "NTasks",         "AllocCPUS",      "ReqCPUS",         "ReqMem",
    "ReqTRES",      "AllocTRES",      "AllocGRES",      "ReqGRES",         "NodeList",
    "TotalCPU",     "MaxRSS",         "MaxRSSNode",     "AveRSS",          "MaxDiskRead",
    "MaxDiskWrite", "TRESUsageInTot", "TRESUsageInMax", "TRESUsageOutTot",
};
constexpr std::array<std::string_view, 9> kLiveColumns = {
    "JobID",       "NTasks",       "AveCPU",         "MaxRSS",          "MaxRSSNode",
    "MaxDiskRead", "MaxDiskWrite", "TRESUsageInTot", "TRESUsageOutTot",
};

std::string known_ones(std::span<const std::string_view> wanted, std::string_view known) {
  std::vector<std::string> names;
  std::istringstream words{std::string(known)};
  for (std::string word; words >> word;) names.push_back(word);
  std::string columns;
  for (const std::string_view name : wanted) {
    if (!names.empty() && std::find(names.begin(), names.end(), name) == names.end()) continue;
    columns += columns.empty() ? "" : ",";
    columns += name;
  }
  return columns;
}

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "CANCELLED by 1000" is CANCELLED.
std::string first_word(std::string_view text) {
  return std::string(text.substr(0, text.find_first_of(" +")));
}

std::optional<uint64_t> tres_number(std::string_view list, std::string_view name) {
  const auto values = parse_tres(list);
  const auto found = values.find(name);
  return found == values.end() ? std::nullopt : parse_slurm_memory(found->second);
}

/// GPUs as "gres/gpu=2", or only by their type, "gres/gpu:a100=2".
std::optional<uint64_t> tres_gpus(std::string_view list) {
  std::optional<uint64_t> sum;
  for (const auto& [name, value] : parse_tres(list)) {
    if (name == "gres/gpu") return number(value);
    if (name.starts_with("gres/gpu:")) sum = sum.value_or(0) + number(value).value_or(0);
  }
  return sum;
}

/// "gpu:2", "gpu:a100:2", "gres:gpu:2" as releases before 21.08 and squeue write it.
std::optional<uint64_t> gres_gpus(std::string_view text) {
  const size_t at = text.find("gpu");
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(at, text.find_first_of(",(", at) - at);
  const size_t colon = rest.find_last_of(":=");
  return colon == std::string_view::npos ? 1 : number(rest.substr(colon + 1)).value_or(1);
}

struct Row {
  const SlurmTable& table;
  size_t index;
  std::string_view operator[](std::string_view column) const { return table.cell(index, column); }
};

std::optional<double> elapsed_of(const Row& row) {
  if (const auto seconds = number(row["ElapsedRaw"])) return static_cast<double>(*seconds);
  return parse_slurm_duration(row["Elapsed"]);
}

SlurmStep step_of(const Row& row, std::string id) {
  SlurmStep step;
  step.id = std::move(id);
  step.state = first_word(row["State"]);
  step.nodes = row["NodeList"];
  step.peak_node = row["MaxRSSNode"];
  step.start = parse_slurm_time(row["Start"]);
  step.end = parse_slurm_time(row["End"]);
  step.elapsed_s = elapsed_of(row);
  step.cpu_s = parse_slurm_duration(row["TotalCPU"]);
  step.cores = number(row["AllocCPUS"]);
  step.tasks = number(row["NTasks"]);
  step.node_count = number(row["NNodes"]);
  if (!step.node_count) step.node_count = number(row["AllocNodes"]);
  step.task_memory = parse_slurm_memory(row["MaxRSS"]);
  const std::string_view in = row["TRESUsageInTot"];
  const std::string_view out = row["TRESUsageOutTot"];
  step.memory = tres_number(in, "mem");
  if (!step.memory && step.task_memory) {  // before 18.08
    step.memory = *step.task_memory * step.tasks.value_or(1);
  }
  step.read = tres_number(in, "fs/disk");
  step.written = tres_number(out, "fs/disk");
  if (const auto busy = tres_number(in, "gres/gpuutil")) {
    step.gpu_busy = static_cast<double>(*busy);
  }
  step.gpu_memory = tres_number(in, "gres/gpumem");
  return step;
}

void take_exit_code(SlurmJob& job, std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return;
  job.exit_status = static_cast<int>(number(text.substr(0, colon)).value_or(0));
  job.signal = static_cast<int>(number(text.substr(colon + 1)).value_or(0));
}

SlurmJob job_of(const Row& row) {
  SlurmJob job;
  job.id = row["JobID"];
  job.raw_id = row["JobIDRaw"];
  job.user = row["User"];
  job.partition = row["Partition"];
  job.state = first_word(row["State"]);
  constexpr std::string_view kCancelled = "CANCELLED by ";
  if (row["State"].starts_with(kCancelled)) {
    const auto user = number(row["State"].substr(kCancelled.size()));
    if (user) job.cancelled_by = static_cast<uint32_t>(*user);
  }
  job.nodes = row["NodeList"];
  take_exit_code(job, row["ExitCode"]);
  job.submit = parse_slurm_time(row["Submit"]);
  job.eligible = parse_slurm_time(row["Eligible"]);
  job.start = parse_slurm_time(row["Start"]);
  job.end = parse_slurm_time(row["End"]);
  job.elapsed_s = elapsed_of(row);
  if (const auto minutes = number(row["TimelimitRaw"])) {
    job.limit_s = 60.0 * static_cast<double>(*minutes);
  } else {
    job.limit_s = parse_slurm_duration(row["Timelimit"]);
  }
  const std::string_view asked = row["ReqTRES"];
  job.asked = {tres_number(asked, "node"), tres_number(asked, "cpu"), tres_number(asked, "mem"),
               tres_gpus(asked)};
  if (!job.asked.cores) job.asked.cores = number(row["ReqCPUS"]);
  if (!job.asked.gpus) job.asked.gpus = gres_gpus(row["ReqGRES"]);
  const std::string_view memory = row["ReqMem"];
  job.memory_per_core = !memory.empty() && memory.back() == 'c';
  job.memory_basis_known = job.memory_per_core || (!memory.empty() && memory.back() == 'n');
  const std::string_view granted = row["AllocTRES"];
  job.granted = {tres_number(granted, "node"), tres_number(granted, "cpu"),
                 tres_number(granted, "mem"), tres_gpus(granted)};
  if (!job.granted.gpus) job.granted.gpus = gres_gpus(row["AllocGRES"]);
  if (!job.granted.cores && !job.pending()) job.granted.cores = number(row["AllocCPUS"]);
  return job;
}

}  // namespace

std::string accounting_columns(std::string_view known) {
  return known_ones(kAccountingColumns, known);
}

std::string live_columns(std::string_view known) { return known_ones(kLiveColumns, known); }

std::vector<SlurmJob> jobs_from_accounting(std::string_view text, size_t& left_out) {
  const SlurmTable table(text);
  left_out += table.left_out();
  std::vector<SlurmJob> jobs;
  for (size_t index = 0; index < table.rows(); ++index) {
    const Row row{table, index};
    const std::string_view id = row["JobID"];
    const size_t dot = id.find('.');
    if (id.empty() || id.front() < '0' || id.front() > '9') {
      ++left_out;
    } else if (dot == std::string_view::npos) {
      jobs.push_back(job_of(row));
    } else if (!jobs.empty() && jobs.back().id == id.substr(0, dot)) {
      jobs.back().steps.push_back(step_of(row, std::string(id.substr(dot + 1))));
    } else {
      ++left_out;  // a step of a job that is not there
    }
  }
  return jobs;
}

std::string queue_format() {
  // JobID, job number, state, reason, user, partition, cores, nodes, memory, limit, used, start,
  // submit, end, nodes, GPUs: letters that every release has.
  std::string format;
  for (const char letter : std::string_view("iATruPCDmlMSVeNb")) {
    format += format.empty() ? "" : std::string(1, kSlurmDelimiter);
    format += fmt::format("%{}", letter);
  }
  return format;
}

std::vector<SlurmJob> jobs_from_queue(std::string_view text, size_t& left_out) {
  // A first line of our own: squeue has one title for two of the columns.
  std::string titled =
      "id raw state reason user partition cores nodes memory limit used start "
      "submit end list gres";
  std::replace(titled.begin(), titled.end(), ' ', kSlurmDelimiter);
  const SlurmTable table(titled + "\n" + std::string(text));
  left_out += table.left_out();
  std::vector<SlurmJob> jobs;
  for (size_t index = 0; index < table.rows(); ++index) {
    const Row row{table, index};
    SlurmJob job;
    job.id = row["id"];
    job.raw_id = row["raw"];
    job.state = row["state"];
    job.reason = row["reason"];
    job.user = row["user"];
    job.partition = row["partition"];
    job.nodes = row["list"];
    job.limit_s = parse_slurm_duration(row["limit"]);
    job.elapsed_s = parse_slurm_duration(row["used"]);
    job.start = parse_slurm_time(row["start"]);
    job.submit = parse_slurm_time(row["submit"]);
    job.end = parse_slurm_time(row["end"]);
    job.asked.nodes = number(row["nodes"]);
    job.asked.cores = number(row["cores"]);
    // squeue says what was asked per node; with --mem-per-cpu, what that makes per core.
    job.asked.memory = parse_slurm_memory(row["memory"]);
    if (job.asked.memory) *job.asked.memory *= job.asked.nodes.value_or(1);
    if (const auto gpus = gres_gpus(row["gres"])) {
      job.asked.gpus = *gpus * job.asked.nodes.value_or(1);
    }
    if (!job.pending()) job.granted = job.asked;
    jobs.push_back(std::move(job));
  }
  return jobs;
}

void add_live_use(SlurmJob& job, std::string_view text) {
  const SlurmTable table(text);
  for (size_t index = 0; index < table.rows(); ++index) {
    const Row row{table, index};
    const std::string_view id = row["JobID"];
    const size_t dot = id.find('.');
    if (dot == std::string_view::npos || id.substr(0, dot) != job.raw_id) continue;
    const std::string name(id.substr(dot + 1));
    auto step = std::find_if(job.steps.begin(), job.steps.end(),
                             [&](const SlurmStep& each) { return each.id == name; });
    if (step == job.steps.end()) {
      step = job.steps.emplace(job.steps.end());
      step->id = name;
      step->state = "RUNNING";
    }
    const SlurmStep live = step_of(row, name);
    step->tasks = live.tasks;
    step->peak_node = live.peak_node;
    step->task_memory = live.task_memory;
    step->memory = live.memory;
    step->read = live.read;
    step->written = live.written;
    step->gpu_busy = live.gpu_busy;
    step->gpu_memory = live.gpu_memory;
    const auto values = parse_tres(row["TRESUsageInTot"]);
    const auto cpu = values.find("cpu");
    step->cpu_s = cpu == values.end() ? std::nullopt : parse_slurm_duration(cpu->second);
    if (!step->cpu_s) {
      if (const auto mean = parse_slurm_duration(row["AveCPU"])) {
        step->cpu_s = *mean * static_cast<double>(live.tasks.value_or(1));
      }
    }
  }
}

}  // namespace stoker
