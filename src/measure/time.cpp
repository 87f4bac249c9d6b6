// SPDX-License-Identifier: Apache-2.0
#include "measure/time.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"
#include "measure/child.h"
#include "measure/hook_files.h"
#include "measure/output_values.h"
#include "measure/tree_watch.h"
#include "os/node.h"
#include "os/output_file.h"
#include "os/own_place.h"

namespace stoker {

RunInfo begin_run(const std::string& directory, const std::vector<std::string>& command,
                  std::string& note) {
  RunInfo info;
  info.command = command;
  info.directory = make_run_directory(directory, note);
  info.version = STOKER_VERSION;
  info.host = host_name();
  info.pid = ::getpid();
  info.cores = usable_cores();
  info.memory_limit = cgroup_memory().limit;
  info.slurm_job = environment("SLURM_JOB_ID");
  info.visible_gpus = environment("CUDA_VISIBLE_DEVICES");
  // Set to nothing it hides all; not set, none.
  if (std::getenv("CUDA_VISIBLE_DEVICES") != nullptr && info.visible_gpus.empty()) {
    info.visible_gpus = "none";
  }
  info.clock_begin_ns = monotonic_ns();
  info.time_of_day_begin_ns = time_of_day_ns();
  info.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  write_run_info(info);
  return info;
}

namespace {

/// A pipe from the command to us, and where what comes through it goes.
struct Relay {
  int ours = -1, theirs = -1;
  int to = -1;

  void open(int destination) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw system_error("a pipe", "cannot be made", errno);
    ours = ends[0];
    theirs = ends[1];
    to = destination;
    ::fcntl(ours, F_SETFL, O_NONBLOCK);
  }
};

/// False where nobody reads it any more.
bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

/// Everything that comes out of the command: passed on, and looked through for values.
class Output {
 public:
  Output(const TimeOptions& options, const RunInfo& info) : terminal_(options.terminal) {
    if (!options.pattern.empty()) values_ = std::make_unique<OutputValues>(options.pattern, info);
    if (terminal_ != nullptr) return;
    if (values_ == nullptr) {  // the command writes by itself
      direct_ = options.output;
      return;
    }
    relays_.resize(2);
    relays_[0].open(options.output >= 0 ? options.output : STDOUT_FILENO);
    relays_[1].open(options.output >= 0 ? options.output : STDERR_FILENO);
  }

  Child::Streams streams() const {
    Child::Streams streams;
    if (terminal_ != nullptr) {
      streams.in = streams.out = streams.err = terminal_->command_side();
      streams.new_terminal = true;
    } else if (!relays_.empty()) {
      streams.out = relays_[0].theirs;
      streams.err = relays_[1].theirs;
    } else {
      streams.out = streams.err = direct_;
    }
    return streams;
  }

  void child_has_them() {
    for (Relay& relay : relays_) {
      ::close(relay.theirs);
      relay.theirs = -1;
    }
  }

  std::vector<pollfd> to_poll() const {
    std::vector<pollfd> found;
    if (terminal_ != nullptr) {
      found.push_back({terminal_->our_side(), POLLIN, 0});
      found.push_back({terminal_->typed(), POLLIN, 0});
    }
    for (const Relay& relay : relays_) {
      if (relay.ours >= 0) found.push_back({relay.ours, POLLIN, 0});
    }
    return found;
  }

  /// What is there now.
  void take() {
    if (terminal_ != nullptr) {
      char typed[256];
      const ssize_t got = ::read(terminal_->typed(), typed, sizeof typed);
      if (got > 0) (void)write_all(terminal_->our_side(), {typed, static_cast<size_t>(got)});
      read_some(terminal_->our_side(), 0, [&](std::string_view bytes) {
        terminal_->show(bytes);
        return true;
      });
    }
    for (size_t i = 0; i < relays_.size(); ++i) {
      Relay& relay = relays_[i];
      if (relay.ours < 0) continue;
      const bool open = read_some(
          relay.ours, i, [&](std::string_view bytes) { return write_all(relay.to, bytes); });
      if (open) continue;
      // Also where our own reader is gone: the command gets the SIGPIPE that it would have got.
      ::close(relay.ours);
      relay.ours = -1;
    }
  }

  /// Nothing more comes.
  void finish() {
    if (values_ != nullptr) values_->finish();
  }

  ~Output() {
    for (const Relay& relay : relays_) {
      if (relay.ours >= 0) ::close(relay.ours);
      if (relay.theirs >= 0) ::close(relay.theirs);
    }
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

 private:
  /// False where one of the ends is closed.
  template <typename Show>
  bool read_some(int descriptor, size_t stream, const Show& show) {
    char piece[1 << 16];
    for (int i = 0; i < 64; ++i) {
      const ssize_t got = ::read(descriptor, piece, sizeof piece);
      if (got == 0) return false;
      if (got < 0) return errno == EAGAIN || errno == EINTR;
      const std::string_view bytes(piece, static_cast<size_t>(got));
      if (values_ != nullptr) values_->take(stream, bytes);
      if (!show(bytes)) return false;
    }
    return true;
  }

  TimeOptions::Terminal* terminal_;
  int direct_ = -1;
  std::vector<Relay> relays_;
  std::unique_ptr<OutputValues> values_;
};

std::map<std::string, std::string> environment_for(const TimeOptions& options,
                                                   const RunInfo& info) {
  std::map<std::string, std::string> changes = options.environment;
  changes["STOKER_RUN"] = info.directory;
  if (options.hook) {
    std::string note;
    const std::string directory = write_hook_files(info.directory, note);
    if (directory.find(':') != std::string::npos) {
      throw CannotRun(ErrorKind::usage,
                      fmt::format("{}: a path with a ':' cannot be found by Python: choose another "
                                  "for the run (--run), or --no-hook",
                                  printable(directory)));
    }
    if (!note.empty() && options.each_note) options.each_note(note);
    if (directory.empty()) return changes;
    const std::string before = environment("PYTHONPATH");
    changes["PYTHONPATH"] = before.empty() ? directory : directory + ":" + before;
  }
  return changes;
}

}  // namespace

std::string make_run_directory(const std::string& wanted, std::string& note) {
  std::string path = wanted;
  if (path.empty()) {
    const OwnPlace place = make_own_place("runs");
    path = fmt::format("{}/{:%Y%m%d-%H%M%S}-{}", place.path, fmt::localtime(std::time(nullptr)),
                       ::getpid());
    if (!place.instead.empty()) {
      note = fmt::format(
          "the run is recorded in {}: another user could replace it here, because "
          "{}; --run DIR chooses a place",
          printable(path), place.instead);
    }
  }
  if (const size_t slash = path.find_last_of('/'); slash != std::string::npos && slash > 0) {
    make_directories(path.substr(0, slash));
  }
  // Two at once must not share one: whoever makes it has it.
  for (int i = 2; ::mkdir(path.c_str(), 0755) != 0; ++i) {
    if (errno != EEXIST || !wanted.empty() || i > 1000) {
      throw system_error(
          path,
          errno == EEXIST ? "is there already: a run needs a new directory" : "cannot be made",
          errno);
    }
    path = fmt::format("{}-{}", path.substr(0, path.find_last_of('-')), ::getpid() + i * 100'000);
  }
  char real[PATH_MAX];
  if (::realpath(path.c_str(), real) == nullptr) throw system_error(path, "is gone", errno);
  return real;
}

namespace {

RunInfo begin_noted(const TimeOptions& options) {
  std::string note;
  RunInfo begun = begin_run(options.directory, options.command, note);
  if (!note.empty() && options.each_note) options.each_note(note);
  return begun;
}

RunInfo run_to_its_end(const TimeOptions& options, RunInfo info) {
  Output output(options, info);
  TreeWatch watch(::getpid(), true, options.interval_s, info);
  Child child(options.command, environment_for(options, info), output.streams(), options.cores);
  output.child_has_them();
  while (child.running()) {
    std::vector<pollfd> waited = output.to_poll();
    waited.push_back({child.signals(), POLLIN, 0});
    const double left = watch.next_look_s() - watch.seconds_since_begin();
    ::poll(waited.data(), waited.size(), left <= 0 ? 0 : static_cast<int>(left * 1e3) + 1);
    output.take();
    child.take_signals();
    if (child.take_resized() && options.terminal != nullptr) options.terminal->resized();
    if (watch.seconds_since_begin() < watch.next_look_s() || !child.running()) continue;
    const ResourceSample& sample = watch.look();
    try {
      if (options.each_look) options.each_look(info, sample);
    } catch (const std::exception&) {  // what is shown must not end what is measured
    }
  }
  output.take();
  output.finish();
  watch.finish(info, static_cast<uint64_t>(child.usage().ru_maxrss) * 1024);
  info.ended = true;
  info.exit_status = child.exit_status();
  info.signal = child.signal();
  info.asked_to_stop = child.asked_to_stop();
  try {
    write_run_info(info);
  } catch (const Error& error) {
    info.trouble = error.what();
  }
  return info;
}

}  // namespace

RunInfo time_command(const TimeOptions& options) {
  RunInfo begun = begin_noted(options);
  if (!options.cores.empty()) begun.cores = static_cast<uint32_t>(options.cores.size());
  const auto gpus = options.environment.find("CUDA_VISIBLE_DEVICES");
  if (gpus != options.environment.end()) begun.visible_gpus = gpus->second;
  try {
    return run_to_its_end(options, begun);
  } catch (const CannotRun&) {  // nothing was measured
    std::error_code ignored;
    std::filesystem::remove_all(begun.directory, ignored);
    throw;
  }
}

RunInfo time_attached(pid_t pid, const TimeOptions& options, const Progress& progress) {
  if (::kill(pid, 0) != 0 && errno != EPERM) {
    throw Error(ErrorKind::not_found, fmt::format("there is no process {}", pid));
  }
  RunInfo info = begin_noted(options);
  TreeWatch watch(pid, false, options.interval_s, info);
  while (!progress.stop.load() && (::kill(pid, 0) == 0 || errno == EPERM)) {
    const double left = watch.next_look_s() - watch.seconds_since_begin();
    if (left > 0) {
      ::poll(nullptr, 0, static_cast<int>(left * 1e3) + 1);
      continue;
    }
    const ResourceSample& sample = watch.look();
    if (sample.processes == 0) break;
    if (options.each_look) options.each_look(info, sample);
  }
  watch.finish(info, 0);
  info.ended = true;
  write_run_info(info);
  return info;
}

}  // namespace stoker
