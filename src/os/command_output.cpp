// SPDX-License-Identifier: Apache-2.0
#include "os/command_output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "os/spawn.h"

namespace stoker {
namespace {

constexpr size_t kMostOutput = 64 << 20;

struct Pipe {
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) ends = {-1, -1};
  }
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) ::close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_writer() {
    ::close(ends[1]);
    ends[1] = -1;
  }

  std::array<int, 2> ends{};
};

/// One read; false when the other end is closed.
bool read_piece(int descriptor, std::string& text) {
  char piece[4096];
  const ssize_t got = ::read(descriptor, piece, sizeof(piece));
  if (got > 0) text.append(piece, static_cast<size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

/// Reads both until they are closed; false where that takes too long.
bool read_all(std::array<int, 2> descriptors, double seconds, CommandAnswer& answer) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  const std::array<std::string*, 2> texts = {&answer.output, &answer.errors};
  while (descriptors[0] >= 0 || descriptors[1] >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return false;
    std::array<pollfd, 2> waiting = {
        {{descriptors[0], POLLIN, 0}, {descriptors[1], POLLIN, 0}}};  // -1 is passed over
    if (::poll(waiting.data(), waiting.size(), static_cast<int>(left.count())) <= 0) continue;
    for (size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].revents == 0) continue;
      if (!read_piece(descriptors[i], *texts[i])) descriptors[i] = -1;
      if (texts[i]->size() > kMostOutput) return false;
    }
  }
  return true;
}

}  // namespace

CommandAnswer command_answer(const std::vector<std::string>& words, double seconds) {
  CommandAnswer answer;
  Pipe output, errors;
  if (output.ends[0] < 0 || errors.ends[0] < 0) return answer;
  pid_t child = 0;
  answer.found = spawn(words, {.output = output.ends[1], .errors = errors.ends[1]}, child) == 0;
  output.close_writer();
  errors.close_writer();
  if (!answer.found) return answer;
  const bool whole = read_all({output.ends[0], errors.ends[0]}, seconds, answer);
  if (!whole) ::kill(child, SIGKILL);
  const int status = wait_for_end(child);
  if (whole && WIFEXITED(status)) answer.status = WEXITSTATUS(status);
  return answer;
}

std::optional<std::string> command_output(const std::vector<std::string>& words, double seconds) {
  CommandAnswer answer = command_answer(words, seconds);
  if (!answer.found || answer.status != 0) return std::nullopt;
  return std::move(answer.output);
}

}  // namespace stoker
