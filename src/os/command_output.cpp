// SPDX-License-Identifier: Apache-2.0
#include "os/command_output.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>

namespace stoker {
namespace {

constexpr size_t kMostOutput = 1 << 20;

/// What a child writes: both ends of a pipe.
class Pipe {
 public:
  Pipe() { made_ = ::pipe2(ends_, O_CLOEXEC) == 0; }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  bool made() const { return made_; }
  int end(int which) const { return ends_[which]; }
  void close_end(int which) {
    if (ends_[which] >= 0) ::close(ends_[which]);
    ends_[which] = -1;
  }

 private:
  int ends_[2] = {-1, -1};
  bool made_ = false;
};

/// Takes what is there; false at the end.
bool take(int descriptor, std::string& text) {
  char piece[4096];
  const ssize_t got = ::read(descriptor, piece, sizeof(piece));
  if (got < 0) return errno == EINTR;
  text.append(piece, static_cast<size_t>(got));
  return got > 0;
}

/// Reads until the other ends are closed; false where that takes too long, or is too much.
bool read_all(const Pipe& out, const Pipe& err, double seconds, CommandResult& result) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  pollfd waiting[] = {{out.end(0), POLLIN, 0}, {err.end(0), POLLIN, 0}};
  std::string* const texts[] = {&result.output, &result.errors};
  while (waiting[0].fd >= 0 || waiting[1].fd >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return false;
    if (::poll(waiting, 2, static_cast<int>(left.count())) <= 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (waiting[i].revents != 0 && !take(waiting[i].fd, *texts[i])) waiting[i].fd = -1;
      if (texts[i]->size() >= kMostOutput) return false;
    }
  }
  return true;
}

}  // namespace

std::optional<CommandResult> run_command(const std::vector<std::string>& words, double seconds) {
  Pipe out, err;
  if (!out.made() || !err.made()) return std::nullopt;
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.end(1), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.end(1), STDERR_FILENO);
  pid_t child = 0;
  const int failed =
      ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return std::nullopt;
  out.close_end(1);
  err.close_end(1);
  CommandResult result;
  const bool whole = read_all(out, err, seconds, result);
  if (!whole) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!whole || !WIFEXITED(status)) return std::nullopt;
  result.status = WEXITSTATUS(status);
  return result;
}

std::optional<std::string> command_output(const std::vector<std::string>& words, double seconds) {
  std::optional<CommandResult> result = run_command(words, seconds);
  if (!result || result->status != 0) return std::nullopt;
  return std::move(result->output);
}

}  // namespace stoker
