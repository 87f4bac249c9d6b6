// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/json.h"
#include "base/text.h"
#include "measure/run_document.h"
#include "os/node.h"
#include "results/document.h"
#include "slurm/job.h"
#include "slurm/text.h"
#include "slurm/words.h"

namespace stoker {
namespace {

template <typename T>
Json or_null(const std::optional<T>& value) {
  if (!value) return nullptr;
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(*value)) return nullptr;
  }
  return *value;
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json resources(const SlurmResources& of) {
  return {{"nodes", or_null(of.nodes)},
          {"cores", or_null(of.cores)},
          {"memory_bytes", or_null(of.memory)},
          {"gpus", or_null(of.gpus)}};
}

Json used_object(const JobUse& use, std::optional<double> seconds) {
  return {{"seconds", or_null(seconds)},
          {"cpu_s", or_null(use.cpu_s)},
          {"cores", or_null(use.cores)},
          {"memory_bytes", or_null(use.memory)},
          {"memory_per_node_bytes", or_null(use.memory_per_node)},
          {"gpu_memory_bytes", or_null(use.gpu_memory)},
          {"read_bytes", or_null(use.read)},
          {"written_bytes", or_null(use.written)}};
}

Json efficiency_object(const JobUse& use) {
  return {{"cpu", or_null(use.cpu_share)},
          {"memory", or_null(use.memory_share)},
          {"time", or_null(use.time_share)},
          {"gpu", or_null(use.gpu_busy)}};
}

Json findings_list(const std::vector<JobFinding>& findings) {
  Json list = Json::array();
  for (const JobFinding& finding : findings) {
    list.push_back({{"what", finding.what}, {"line", text_or_null(finding.line)}});
  }
  return list;
}

Json step_object(const SlurmStep& step) {
  return {{"step", step.id},
          {"state", step.state},
          {"nodes", expand_nodes(step.nodes)},
          {"seconds", or_null(step.elapsed_s)},
          {"tasks", or_null(step.tasks)},
          {"cores", or_null(step.cores)},
          {"cpu_s", or_null(step.cpu_s)},
          {"memory_bytes", or_null(step.memory)},
          {"peak_task_memory_bytes", or_null(step.task_memory)},
          {"peak_node", text_or_null(step.peak_node)},
          {"read_bytes", or_null(step.read)},
          {"written_bytes", or_null(step.written)}};
}

Json cancelled_object(const SlurmJob& job) {
  if (!job.cancelled_by) return nullptr;
  return {{"uid", *job.cancelled_by}, {"user", text_or_null(name_of_user(*job.cancelled_by))}};
}

Json part_object(const JobPart& part) {
  const SlurmJob& job = part.job;
  Json asked = resources(job.asked);
  asked["seconds"] = or_null(job.limit_s);
  Json json = {{"id", job.id},
               {"raw_id", job.raw_id},
               {"name", printable(job.name)},
               {"user", job.user},
               {"partition", job.partition},
               {"state", job.state},
               {"state_in_words", state_in_words(job.state)},
               {"reason", text_or_null(reason_in_words(job.reason))},
               {"cancelled_by", cancelled_object(job)},
               {"exit_status", job.exit_status},
               {"signal", job.signal},
               {"nodes", expand_nodes(job.nodes)},
               {"submitted", or_null(job.submit)},
               {"started", or_null(job.start)},
               {"ended", or_null(job.pending() || job.active() ? std::nullopt : job.end)},
               {"wait_s", or_null(part.use.wait_s)},
               {"asked", std::move(asked)},
               {"granted", resources(job.granted)},
               {"used", used_object(part.use, job.elapsed_s)},
               {"efficiency", efficiency_object(part.use)},
               {"findings", findings_list(part.findings)},
               {"wasted_core_s", part.wasted},
               {"steps", Json::array()}};
  for (const SlurmStep& step : job.steps) json["steps"].push_back(step_object(step));
  return json;
}

}  // namespace

Json job_document(const JobReport& report) {
  Json json = document_header("job");
  json["kind"] = report.kind;
  // What the one job is; of several, what the first one asked for and all of them used.
  json.update(part_object(report.parts.front()));
  if (report.kind != "job") {
    json["id"] = report.parts.front().job.family();
    json["used"] = used_object(report.use, std::nullopt);
    json["efficiency"] = efficiency_object(report.use);
    json["findings"] = findings_list(report.findings);
    json["steps"] = Json::array();
  }
  json["parts"] = Json::array();
  if (report.kind != "job") {
    for (const JobPart& part : report.parts) json["parts"].push_back(part_object(part));
  }
  json["runs"] = Json::array();
  for (const JobRun& run : report.runs) json["runs"].push_back(run_document(run.run, run.summary));
  json["notes"] = report.notes;
  return json;
}

Json jobs_document(const std::vector<Json>& documents, const std::vector<std::string>& failures) {
  Json json = document_header("job");
  json["kind"] = "list";
  json["jobs"] = documents;
  json["notes"] = failures;
  return json;
}

Json user_jobs_document(const JobReport& report) {
  Json json = document_header("job");
  json["kind"] = report.kind;
  json["jobs"] = Json::array();
  for (const JobPart& part : report.parts) json["jobs"].push_back(part_object(part));
  json["notes"] = report.notes;
  return json;
}

}  // namespace stoker
