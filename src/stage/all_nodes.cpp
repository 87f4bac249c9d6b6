// SPDX-License-Identifier: Apache-2.0
#include "stage/all_nodes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "os/node.h"
#include "os/spawn.h"
#include "results/document.h"

namespace stoker {
namespace {

constexpr int kLookMs = 100;
constexpr size_t kMostOutput = 64 << 20;

/// srun, with its output in a pipe; a group of its own, so that Ctrl-C comes from us alone.
class Srun {
 public:
  explicit Srun(const std::vector<std::string>& words) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
      throw system_error("srun", "cannot make a pipe", errno);
    output_ = ends[0];
    const int failed = spawn(words, {.output = ends[1], .own_group = true}, child_);
    ::close(ends[1]);
    if (failed != 0) {
      ::close(output_);
      throw system_error("srun", "cannot be started, so only this node could be staged to", failed);
    }
  }
  ~Srun() { ::close(output_); }
  Srun(const Srun&) = delete;
  Srun& operator=(const Srun&) = delete;

  /// All that it prints; told to end as soon as the user asks to stop.
  std::string read(const Progress& progress) {
    std::string text;
    bool told = false;
    for (;;) {
      if (progress.stop && !told) {
        ::kill(child_, SIGTERM);
        told = true;
      }
      pollfd waiting{output_, POLLIN, 0};
      if (::poll(&waiting, 1, kLookMs) <= 0) continue;
      std::array<char, 4096> piece{};
      const ssize_t got = ::read(output_, piece.data(), piece.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      if (text.size() < kMostOutput) text.append(piece.data(), static_cast<size_t>(got));
    }
    wait_for_end(child_);
    return text;
  }

 private:
  pid_t child_ = 0;
  int output_ = -1;
};

unsigned number_in(const char* variable) {
  const std::string text = environment(variable);
  unsigned number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

std::map<unsigned, std::string> lines_by_task(std::string_view text) {
  std::map<unsigned, std::string> tasks;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    unsigned task = 0;
    const auto [rest, failed] = std::from_chars(line.data(), line.data() + line.size(), task);
    line.remove_prefix(static_cast<size_t>(rest - line.data()));
    if (failed != std::errc() || !line.starts_with(": ")) continue;
    tasks[task] += std::string(line.substr(2)) + "\n";
  }
  return tasks;
}

unsigned nodes_to_stage_on() {
  // Only tasks of a step have it; the job script has none.
  if (environment("SLURM_JOB_ID").empty() || !environment("SLURM_STEP_ID").empty()) return 1;
  return std::max(1U, number_in("SLURM_JOB_NUM_NODES"));
}

std::vector<Json> run_on_nodes(unsigned nodes, const std::vector<std::string>& words,
                               const Progress& progress) {
  // One task for each node, beside whatever else runs in the job, with all of its cores.
  std::vector<std::string> all = {"srun",
                                  "--overlap",
                                  fmt::format("--nodes={}", nodes),
                                  fmt::format("--ntasks={}", nodes),
                                  "--ntasks-per-node=1",
                                  "--cpu-bind=none",
                                  "--kill-on-bad-exit=0",
                                  "--input=none",
                                  "--label",
                                  own_program("stoker")};
  all.insert(all.end(), words.begin(), words.end());
  const std::map<unsigned, std::string> answers = lines_by_task(Srun(all).read(progress));
  progress.check_stop();
  std::vector<Json> documents;
  for (const auto& [task, text] : answers) {
    try {
      documents.push_back(parse_json(text));
    } catch (const Json::exception&) {
      throw Error(ErrorKind::io, fmt::format("task {} of srun answered what is no document: {}",
                                             task, printable(text.substr(0, 200))));
    }
  }
  if (documents.size() != nodes) {
    throw Error(ErrorKind::io,
                fmt::format("srun: {} of {} nodes have answered: see its messages above",
                            documents.size(), nodes));
  }
  return documents;
}

Json cleaned_nodes_document(const std::vector<Json>& documents) {
  Json json = document_header("stage");
  uint64_t bytes = 0;
  json["nodes"] = Json::array();
  for (Json document : documents) {
    document.erase("stoker");
    if (!document.contains("error")) bytes += document.at("bytes").get<uint64_t>();
    json["nodes"].push_back(std::move(document));
  }
  json["bytes"] = bytes;
  return json;
}

Json nodes_document(const std::vector<Json>& documents) {
  Json json = document_header("stage");
  uint64_t bytes = 0, reused = 0;
  double seconds = 0;
  bool verified = true, complete = true;
  json["place"] = nullptr;
  json["nodes"] = Json::array();
  for (Json document : documents) {
    document.erase("stoker");
    if (document.contains("error")) {
      verified = complete = false;
    } else {
      if (json["place"].is_null()) json["place"] = document.at("place");
      bytes += document.at("staged_bytes").get<uint64_t>();
      reused += document.at("reused_bytes").get<uint64_t>();
      seconds = std::max(seconds, document.at("seconds").get<double>());
      verified = verified && document.at("verified").get<bool>();
      complete = complete && document.at("complete").get<bool>();
    }
    json["nodes"].push_back(std::move(document));
  }
  json["bytes"] = bytes;
  json["reused_bytes"] = reused;
  json["complete"] = complete;
  json["verified"] = verified;
  json["seconds"] = seconds;
  return json;
}

}  // namespace stoker
