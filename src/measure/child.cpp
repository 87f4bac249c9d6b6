// SPDX-License-Identifier: Apache-2.0
#include "measure/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

extern char** environ;

namespace stoker {
namespace {

constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT, SIGCONT};

sigset_t watched_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGCHLD);
  ::sigaddset(&set, SIGWINCH);
  for (const int signal : kPassedOn) ::sigaddset(&set, signal);
  return set;
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> all;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view entry = *each;
    if (!changes.contains(std::string(entry.substr(0, entry.find('='))))) all.emplace_back(entry);
  }
  for (const auto& [name, value] : changes) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> found;
  for (std::string& word : words) found.push_back(word.data());
  found.push_back(nullptr);
  return found;
}

}  // namespace

Child::Child(const std::vector<std::string>& command,
             const std::map<std::string, std::string>& environment, const Streams& streams,
             const std::vector<int>& cores) {
  std::vector<std::string> words = command;
  std::vector<std::string> variables = environment_with(environment);
  const std::vector<char*> arguments = pointers(words);
  std::vector<char*> environment_pointers = pointers(variables);
  cpu_set_t pinned;
  CPU_ZERO(&pinned);
  for (const int core : cores) CPU_SET(core, &pinned);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const sigset_t watched = watched_signals();
  ::sigprocmask(SIG_BLOCK, &watched, &mask_before_);
  signals_ = ::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  int report[2] = {-1, -1};
  if (signals_ < 0 || ::pipe2(report, O_CLOEXEC) != 0) {
    throw system_error(command[0], "cannot be watched", errno);
  }
  pid_ = ::fork();
  if (pid_ == 0) {
    // Between fork and exec nothing but calls that are safe there.
    for (const int signal : {SIGPIPE, SIGINT, SIGTERM}) (void)::signal(signal, SIG_DFL);
    ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
    if (streams.new_terminal) {
      ::setsid();
      ::ioctl(streams.in, TIOCSCTTY, 0);
    }
    if (streams.in >= 0) ::dup2(streams.in, STDIN_FILENO);
    if (streams.out >= 0) ::dup2(streams.out, STDOUT_FILENO);
    if (streams.err >= 0) ::dup2(streams.err, STDERR_FILENO);
    if (!cores.empty()) ::sched_setaffinity(0, sizeof pinned, &pinned);
    environ = environment_pointers.data();
    ::execvp(arguments[0], arguments.data());
    const int why = errno;
    [[maybe_unused]] const ssize_t sent = ::write(report[1], &why, sizeof why);
    ::_exit(127);
  }
  ::close(report[1]);
  int why = errno;
  const bool failed = pid_ < 0 || ::read(report[0], &why, sizeof why) == sizeof why;
  ::close(report[0]);
  if (!failed) return;
  if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  ::close(signals_);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  throw CannotRun(why == ENOENT ? ErrorKind::not_found : ErrorKind::permission,
                  fmt::format("{}: cannot be run: {}", printable(command[0]), std::strerror(why)),
                  why);
}

Child::~Child() {
  ::close(signals_);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

void Child::take_signals() {
  signalfd_siginfo info{};
  while (::read(signals_, &info, sizeof info) == sizeof info) {
    const auto signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGWINCH) resized_ = true;
    if (signal == SIGCHLD || signal == SIGWINCH) continue;
    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT) {
      asked_to_stop_ = true;
    }
    // What the terminal sends goes to the whole group, the command included.
    if (info.ssi_code != SI_KERNEL && running_) ::kill(pid_, signal);
  }
  reap();
}

void Child::reap() {
  int status = 0;
  rusage usage{};
  pid_t ended = 0;
  while ((ended = ::wait4(-1, &status, WNOHANG, &usage)) > 0) {
    if (ended != pid_) continue;
    running_ = false;
    usage_ = usage;
    signal_ = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    exit_status_ = WIFSIGNALED(status) ? 128 + signal_ : WEXITSTATUS(status);
  }
}

bool Child::take_resized() {
  const bool resized = resized_;
  resized_ = false;
  return resized;
}

}  // namespace stoker
