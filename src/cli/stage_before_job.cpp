// SPDX-License-Identifier: Apache-2.0
#include "cli/stage_before_job.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/slurm_jobs.h"
#include "os/node.h"
#include "os/site.h"
#include "results/document.h"
#include "slurm/submit.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

/// Where it goes to: what compute nodes and the partition for transfers both see.
std::string place_of(const Arguments& arguments) {
  if (arguments.rest().size() > 1) return fs::absolute(arguments.rest()[1]).string();
  const std::string scratch = environment("SCRATCH");
  if (scratch.empty()) {
    throw Error(ErrorKind::usage,
                "--before-job: PLACE is missing, and $SCRATCH is not set: name a directory that "
                "the nodes of the training job see");
  }
  return fs::absolute(scratch).string();
}

SiteJobs transfer_defaults() {
  const Site site = read_site();
  SiteJobs jobs = site.transfer;
  if (jobs.account.empty()) jobs.account = site.slurm.account;
  return jobs;
}

/// The same bytes behind the same name, wherever it runs: nothing here needs to see the dataset.
PlannedJob transfer_job(const Arguments& arguments, const std::string& dataset,
                        const std::string& place, const std::string& directory) {
  PlannedJob job{script_for(arguments, "stoker-stage", directory, transfer_defaults()), ""};
  job.script.request.nodes = 1;
  std::vector<std::string> words = staging_words(arguments);
  // The job that brings it ends at once, and the one that needs it comes later.
  if (!arguments.flag("--keep")) words.emplace_back("--keep");
  words.insert(words.begin(), own_program("stoker"));
  words.insert(words.end(), {dataset, place});
  job.script.body = body_with_result(directory, words);
  return job;
}

std::string submitted_text(const std::string& transfer, const std::optional<std::string>& then,
                           const std::string& dataset, const std::string& place,
                           const BatchScript& script, const std::string& directory) {
  const std::string partition = script.request.partition;
  std::string text = fmt::format(
      "submitted: job {} brings {} to {}, in {}\n", transfer, printable(dataset), printable(place),
      partition.empty() ? "the cluster's own choice of partition (the site's file may name the "
                          "one for transfers)"
                        : "partition " + printable(partition));
  text += fmt::format("its script, its log and its result: {}\n", printable(directory));
  text += then ? fmt::format("submitted: job {} begins when the dataset is there\n", *then)
               : fmt::format(
                     "next: sbatch --dependency=afterok:{} --kill-on-invalid-dep=yes "
                     "TRAIN.sh   begins when the dataset is there\n",
                     transfer);
  text += fmt::format("in that job: stoker stage {} {} --json   says where it is\n",
                      shell_quoted(dataset), shell_quoted(place));
  return text;
}

}  // namespace

std::vector<std::string> staging_words(const Arguments& arguments) {
  std::vector<std::string> words = {"stage"};
  if (arguments.flag("--partial")) words.emplace_back("--partial");
  if (const auto group = arguments.value("--group")) words.push_back("--group=" + *group);
  if (const unsigned jobs = arguments.jobs()) words.push_back(fmt::format("--jobs={}", jobs));
  if (arguments.flag("--keep")) words.emplace_back("--keep");
  if (arguments.flag("--verify")) words.emplace_back("--verify");
  return words;
}

int stage_before_job(const Arguments& arguments) {
  const std::string dataset = fs::absolute(arguments.rest()[0]).lexically_normal().string();
  const std::string place = place_of(arguments);
  const std::optional<std::string> then = arguments.value(kThenOption.name);
  if (then && !fs::is_regular_file(*then)) {
    throw Error(ErrorKind::usage,
                fmt::format("{} '{}': is no file", kThenOption.name, printable(*then)));
  }
  const std::string directory = new_jobs_directory("stage");
  const std::vector<PlannedJob> jobs = {transfer_job(arguments, dataset, place, directory)};
  if (arguments.flag(kPrintOption.name)) {
    print_scripts(directory, jobs);
    return kExitDone;
  }
  const std::string transfer = submit_jobs(directory, jobs).front();
  const std::string dependency = "afterok:" + transfer;
  std::optional<std::string> training;
  if (then) {
    try {
      training = submit_job(*then, dependency);
    } catch (const Error&) {
      cancel_jobs({transfer});
      throw;
    }
  }
  if (!arguments.flag(kJsonOption.name)) {
    print(submitted_text(transfer, training, dataset, place, jobs.front().script, directory));
    return kExitDone;
  }
  Json json = document_header("stage");
  json["job"] = transfer;
  json["dependency"] = dependency;
  json["then"] = training ? Json(*training) : Json();
  json["source"] = name_to_json(dataset);
  json["place"] = name_to_json(place);
  json["directory"] = name_to_json(directory);
  print(to_text(json));
  return kExitDone;
}

}  // namespace stoker
