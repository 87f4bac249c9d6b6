// SPDX-License-Identifier: Apache-2.0
// What several releases of Slurm print, as jobs: tests/data/slurm/README.md says where it is from.
#include "slurm/job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "base/json.h"
#include "slurm/accounting.h"

namespace stoker {
namespace {

std::string recorded(const std::string& name) {
  std::ifstream file(std::string(STOKER_TEST_DATA) + "/slurm/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<SlurmJob> jobs_in(const std::string& name) {
  size_t left_out = 0;
  std::vector<SlurmJob> jobs = jobs_from_accounting(recorded(name), left_out);
  EXPECT_EQ(left_out, 0U);
  return jobs;
}

std::vector<std::string> lines_of(const std::vector<JobFinding>& findings) {
  std::vector<std::string> lines;
  for (const JobFinding& finding : findings) lines.push_back(finding.line);
  return lines;
}

/// Slurm whose sacct prints this text and whose squeue knows nothing.
SlurmRunner slurm_with(const std::string& text) {
  return [text](const std::vector<std::string>& words) {
    CommandAnswer answer{true, 0, "", ""};
    const auto has = [&](const char* word) {
      return std::find(words.begin(), words.end(), word) != words.end();
    };
    if (words[0] == "sacct" && has("--noconvert")) answer.output = text;
    if (words[0] == "squeue" && has("-j")) answer.status = 1;
    return answer;
  };
}

TEST(SlurmJobs, Of22) {
  const std::vector<SlurmJob> jobs = jobs_in("22.05.8-recorded-sacct.txt");
  ASSERT_EQ(jobs.size(), 8U);
  const JobUse use = use_of(jobs[0]);
  EXPECT_DOUBLE_EQ(*use.cpu_share, 13.338 / (31 * 4));
  EXPECT_DOUBLE_EQ(*use.memory_share, 1524178944.0 / (4096.0 * 1024 * 1024));
  EXPECT_EQ(use.memory_per_node, 1524178944 + 11206656);
  EXPECT_EQ(lines_of(job_findings(jobs[0], use)),
            (std::vector<std::string>{"#SBATCH --mem=3G", "#SBATCH --ntasks=1 --cpus-per-task=1",
                                      "#SBATCH --time=00:05:00"}));
  EXPECT_EQ(jobs[2].id, "7+1");
  EXPECT_EQ(jobs[2].family(), "7");
  EXPECT_EQ(jobs[2].asked.cores, 2U);
  EXPECT_EQ(jobs[3].granted.gpus, 1U);
  EXPECT_EQ(jobs[4].id, "6_1");
  EXPECT_EQ(jobs[4].raw_id, "11");
  EXPECT_TRUE(jobs[7].pending());
  EXPECT_TRUE(job_findings(jobs[7], use_of(jobs[7])).empty());
}

TEST(SlurmJobs, QueueOf22) {
  size_t left_out = 0;
  const auto jobs = jobs_from_queue(recorded("22.05.8-recorded-squeue.txt"), left_out);
  ASSERT_EQ(jobs.size(), 8U);
  EXPECT_EQ(left_out, 0U);
  EXPECT_EQ(jobs[3].id, "10_5");
  EXPECT_EQ(jobs[3].reason, "JobHeldUser");
  EXPECT_EQ(jobs[3].asked.memory, uint64_t{100} << 20);
  EXPECT_DOUBLE_EQ(*jobs[3].limit_s, 600);
}

TEST(SlurmJobs, Of20) {
  const SlurmJob job = jobs_in("20.11-constructed-sacct.txt").at(0);
  EXPECT_EQ(job.state, "CANCELLED");
  EXPECT_TRUE(job.memory_per_core);
  EXPECT_EQ(job.granted.gpus, 4U);
  ASSERT_EQ(job.steps.size(), 3U);
  const JobUse use = use_of(job);
  EXPECT_DOUBLE_EQ(*use.cpu_s, 28800);
  EXPECT_DOUBLE_EQ(*use.cpu_share, 0.5);
  EXPECT_DOUBLE_EQ(*use.wait_s, 300);
  // Two tasks on each of two nodes, the largest 2 GiB; beside them the script and the extern step.
  EXPECT_EQ(use.memory_per_node, 2 * 2147483648 + 10485760 + 1048576);
  // Cancelled: how long it takes is not known. Four tasks, two cores busy for each.
  EXPECT_EQ(lines_of(job_findings(job, use)),
            (std::vector<std::string>{"#SBATCH --ntasks=4 --cpus-per-task=2 --mem-per-cpu=1792M",
                                      "#SBATCH --ntasks=4 --cpus-per-task=2 --mem-per-cpu=1792M"}));
}

TEST(SlurmJobs, Of24) {
  const SlurmJob job = jobs_in("24.11-constructed-sacct.txt").at(0);
  EXPECT_EQ(job.granted.gpus, 4U);
  EXPECT_EQ(job.granted.memory, uint64_t{256} << 30);
  const JobUse use = use_of(job);
  EXPECT_DOUBLE_EQ(*use.gpu_busy, 0.25);
  EXPECT_EQ(use.gpu_memory, uint64_t{38888} << 20);
  EXPECT_EQ(lines_of(job_findings(job, use)),
            (std::vector<std::string>{"#SBATCH --gres=gpu:1", "#SBATCH --mem=38G",
                                      "#SBATCH --ntasks=1 --cpus-per-task=2"}));
}

TEST(SlurmJobs, ColumnsThatAreMissingOrNew) {
  const SlurmJob job = jobs_in("25.05-constructed-sacct.txt").at(0);
  const JobUse use = use_of(job);
  EXPECT_DOUBLE_EQ(*use.cpu_s, 119.9);
  EXPECT_FALSE(use.time_share);
  EXPECT_FALSE(job.submit);
  EXPECT_EQ(
      lines_of(job_findings(job, use)),
      (std::vector<std::string>{"#SBATCH --mem=14G", "#SBATCH --ntasks=1 --cpus-per-task=1"}));
}

TEST(SlurmJobs, OnlyColumnsThatSacctKnows) {
  const std::string known = recorded("22.05.8-recorded-helpformat.txt");
  const std::string columns = accounting_columns(known);
  EXPECT_NE(columns.find("TRESUsageInTot"), std::string::npos);
  EXPECT_EQ(columns.find("AllocGRES"), std::string::npos);
  EXPECT_NE(accounting_columns("").find("AllocGRES"), std::string::npos);
}

TEST(SlurmJobs, NonsenseIsLeftOutAndSaid) {
  const std::string text = recorded("22.05.8-recorded-sacct.txt");
  const std::string head = text.substr(0, text.find('\n') + 1);
  const std::string row = text.substr(head.size(), text.find('\n', head.size()) + 1 - head.size());
  const JobReport report = job("4", "", slurm_with(head + "garbage\n" + row + "\x1f\x1f\n"));
  EXPECT_EQ(report.parts.size(), 1U);
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_NE(report.notes[0].find("2 rows"), std::string::npos);
}

TEST(SlurmJobs, EveryCutIsSurvived) {
  const std::string text = recorded("20.11-constructed-sacct.txt");
  for (size_t length = 0; length < text.size(); length += 7) {
    size_t left_out = 0;
    for (const SlurmJob& each : jobs_from_accounting(text.substr(0, length), left_out)) {
      job_findings(each, use_of(each));
    }
  }
}

TEST(SlurmJobs, ArraysHaveOneAdvice) {
  const std::string text = recorded("22.05.8-recorded-sacct.txt");
  std::string tasks = text.substr(0, text.find('\n') + 1);
  tasks += text.substr(text.find("\n6_1") + 1);
  const JobReport report = job("6", "", slurm_with(tasks));
  EXPECT_EQ(report.kind, "array");
  EXPECT_EQ(report.parts.size(), 4U);
  EXPECT_EQ(job_document(report)["id"], "6");
}

/// One that was granted so much memory, with one step that used so much.
SlurmJob job_with(uint64_t granted, uint64_t peak, const std::string& state = "COMPLETED") {
  SlurmJob job;
  job.id = job.raw_id = "9";
  job.state = state;
  job.elapsed_s = 1000;
  job.limit_s = 1000;
  job.asked = job.granted = {1, 1, granted, std::nullopt};
  SlurmStep step;
  step.id = "batch";
  step.state = state;
  step.tasks = 1;
  step.memory = step.task_memory = peak;
  job.steps.push_back(step);
  return job;
}

std::string memory_advice(const SlurmJob& job) {
  for (const JobFinding& finding : job_findings(job, use_of(job))) {
    if (finding.line.starts_with("#SBATCH --mem=")) return finding.line.substr(14);
  }
  return "";
}

TEST(SlurmJobs, MemoryToAskFor) {
  const SlurmJob job = job_with(64'000'000'000, 3'100'000'000);
  EXPECT_EQ(job_findings(job, use_of(job)).at(0).what,
            "asked 59.6 GiB, peak 2.89 GiB (in place of --mem-per-cpu, if the script has that)");
  EXPECT_EQ(memory_advice(job), "5G");
  constexpr uint64_t kGibi = uint64_t{1} << 30;
  EXPECT_EQ(memory_advice(job_with(500 * kGibi, 1)), "1G");
  EXPECT_EQ(memory_advice(job_with(500 * kGibi, 8 * kGibi)), "12G");
  EXPECT_EQ(memory_advice(job_with(500 * kGibi, 20 * kGibi)), "24G");
  EXPECT_EQ(memory_advice(job_with(500 * kGibi, 100 * kGibi)), "120G");
}

TEST(SlurmJobs, MemoryForEachCore) {
  constexpr uint64_t kGibi = uint64_t{1} << 30;
  SlurmJob job = job_with(64 * kGibi, 8 * kGibi);
  job.granted.cores = 4;
  job.memory_basis_known = job.memory_per_core = true;
  // 12 GiB, as --mem would say, for the four cores that it has.
  const std::vector<JobFinding> findings = job_findings(job, use_of(job));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].what, "asked 64 GiB, peak 8 GiB");
  EXPECT_EQ(findings[0].line, "#SBATCH --mem-per-cpu=3072M");
  // And for the one that it needs: fewer cores alone would be less memory.
  job.steps[0].cpu_s = 900;
  EXPECT_EQ(
      lines_of(job_findings(job, use_of(job))),
      (std::vector<std::string>{"#SBATCH --ntasks=1 --cpus-per-task=1 --mem-per-cpu=12288M",
                                "#SBATCH --ntasks=1 --cpus-per-task=1 --mem-per-cpu=12288M"}));
}

TEST(SlurmJobs, WhatRunsHasNotShownWhatItNeeds) {
  constexpr uint64_t kGibi = uint64_t{1} << 30;
  SlurmJob job = job_with(64 * kGibi, 8 * kGibi, "RUNNING");
  job.granted.cores = 4;
  job.steps[0].cpu_s = 900;
  const std::vector<JobFinding> findings = job_findings(job, use_of(job));
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].what, "asked 64 GiB, peak 8 GiB so far");
  EXPECT_EQ(findings[1].what, "asked 4 cores, 0.9 busy on average so far");
  EXPECT_EQ(lines_of(findings), (std::vector<std::string>{"", ""}));
  // More than it has had already it certainly needs.
  job = job_with(8 * kGibi, 8 * kGibi, "RUNNING");
  EXPECT_EQ(memory_advice(job), "12G");
}

TEST(SlurmJobs, WhoCancelledIt) {
  std::string text = recorded("22.05.8-recorded-sacct.txt");
  const size_t state = text.find("COMPLETED");
  text.replace(state, 9, "CANCELLED by 0");
  size_t left_out = 0;
  const SlurmJob job = jobs_from_accounting(text, left_out).at(0);
  EXPECT_EQ(job.state, "CANCELLED");
  EXPECT_EQ(job.cancelled_by, 0U);
}

TEST(SlurmJobs, MemoryThatWasNotEnough) {
  constexpr uint64_t kGibi = uint64_t{1} << 30;
  EXPECT_EQ(memory_advice(job_with(8 * kGibi, kGibi, "OUT_OF_MEMORY")), "14G") << "peak not seen";
  // A step that the kernel killed, and a script that went on.
  SlurmJob job = job_with(8 * kGibi, kGibi, "OUT_OF_MEMORY");
  job.state = "COMPLETED";
  EXPECT_EQ(memory_advice(job), "14G");
  // One that Slurm killed, as 22.05 records it; one that its user cancelled.
  job = job_with(8 * kGibi, 12 * kGibi, "CANCELLED");
  job.state = "FAILED";
  EXPECT_TRUE(use_of(job).out_of_memory);
  EXPECT_EQ(memory_advice(job), "16G");
  EXPECT_FALSE(use_of(job_with(8 * kGibi, 12 * kGibi, "CANCELLED")).out_of_memory);
}

TEST(SlurmJobs, ArraysOfWhichSomeFailed) {
  const std::string text = recorded("22.05.8-recorded-sacct.txt");
  const std::string head = text.substr(0, text.find('\n') + 1);
  const std::string row = text.substr(text.find("\n6_1") + 1);
  const std::string task = row.substr(0, row.find('\n') + 1);
  ASSERT_NE(task.find("COMPLETED"), std::string::npos);
  const auto with_states = [&](const std::vector<std::string>& states) {
    std::string rows = head;
    for (size_t i = 0; i < states.size(); ++i) {
      std::string one = task;
      one.replace(one.find("COMPLETED"), 9, states[i]);
      rows += one.replace(0, 3, "6_" + std::to_string(i + 1));
    }
    return job("6", "", slurm_with(rows));
  };
  const JobReport both = with_states({"TIMEOUT", "OUT_OF_MEMORY", "COMPLETED"});
  EXPECT_TRUE(both.use.out_of_memory && both.use.out_of_time);
  ASSERT_EQ(both.findings.size(), 2U);
  EXPECT_TRUE(both.findings[0].line.starts_with("#SBATCH --mem="));
  EXPECT_TRUE(both.findings[1].line.starts_with("#SBATCH --time="));
}

TEST(SlurmJobs, WhatIsNoJob) {
  for (const char* id : {"", "abc", "1;2", "$(id)", "1_", "-1", "1.0", "12345678901", "1_[1-2]"}) {
    EXPECT_THROW(job(id, "", slurm_with("")), Error) << id;
  }
  try {
    job("1", "", slurm_with("JobID\n"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
  }
}

}  // namespace
}  // namespace stoker
