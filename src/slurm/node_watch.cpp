// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "os/node.h"
#include "os/spawn.h"
#include "slurm/node_use.h"

namespace stoker {
NodeWatch::NodeWatch(const std::string& job, size_t nodes, unsigned every_s) {
  int ends[2], error_ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  if (::pipe2(error_ends, O_CLOEXEC) != 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    return;
  }
  const std::vector<std::string> words = {"srun",
                                          "--overlap",
                                          "--jobid=" + job,
                                          fmt::format("--nodes={}", nodes),
                                          fmt::format("--ntasks={}", nodes),
                                          "--ntasks-per-node=1",
                                          "--cpus-per-task=1",
                                          "--mem=0",
                                          "--gres=none",
                                          "--input=none",
                                          "--unbuffered",
                                          "--quiet",
                                          "--chdir=/",
                                          own_program("stoker"),
                                          "job",
                                          "--here",
                                          fmt::format("--every={}", every_s)};
  const int failed =
      spawn(words, {.output = ends[1], .errors = error_ends[1], .own_group = true}, child_);
  ::close(ends[1]);
  ::close(error_ends[1]);
  errors_ = error_ends[0];
  ::fcntl(errors_, F_SETFL, O_NONBLOCK);
  if (failed != 0) {
    child_ = -1;
    complaints_ = std::strerror(failed);
    ::close(ends[0]);
    return;
  }
  output_ = ends[0];
}

NodeWatch::~NodeWatch() {
  if (output_ >= 0) ::close(output_);
  if (errors_ >= 0) ::close(errors_);
  if (child_ < 0) return;
  ::kill(child_, SIGTERM);
  wait_for_end(child_);
}

std::string NodeWatch::errors() {
  constexpr size_t kMost = 1 << 16;  // more is read, so that srun does not wait, and forgotten
  char piece[4096];
  for (ssize_t got = 0; (got = ::read(errors_, piece, sizeof piece)) > 0;) {
    if (complaints_.size() < kMost) complaints_.append(piece, static_cast<size_t>(got));
  }
  return complaints_.substr(0, complaints_.find('\n'));
}

std::vector<NodeUse> NodeWatch::next(double seconds) {
  std::vector<NodeUse> uses;
  errors();
  pollfd waiting{output_, POLLIN, 0};
  if (::poll(&waiting, 1, static_cast<int>(seconds * 1000)) <= 0 || output_ < 0) return uses;
  char piece[65536];
  const ssize_t got = ::read(output_, piece, sizeof piece);
  if (got < 0 && errno == EINTR) return uses;
  if (got <= 0) {
    ::close(output_);
    output_ = -1;
    return uses;
  }
  begun_.append(piece, static_cast<size_t>(got));
  for (size_t end = begun_.find('\n'); end != std::string::npos; end = begun_.find('\n')) {
    if (auto use = node_use_from(std::string_view(begun_).substr(0, end))) {
      uses.push_back(std::move(*use));
    }
    begun_.erase(0, end + 1);
  }
  constexpr size_t kMostLine = 1 << 20;  // what is longer is not from us
  if (begun_.size() > kMostLine) begun_.clear();
  return uses;
}

}  // namespace stoker
