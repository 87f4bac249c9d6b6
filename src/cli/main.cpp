// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "base/freed_memory.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/output.h"

namespace stoker {
namespace {

/// Every command stoker knows.
constexpr std::array kCommands = {&kPackCommand,   &kIndexCommand, &kCheckCommand, &kLoadCommand,
                                  &kStageCommand,  &kTimeCommand,  &kScaleCommand, &kProbeCommand,
                                  &kReportCommand, &kJobCommand};

// Global because a signal handler sees nothing else.
Progress progress_of_all;

extern "C" void stop_politely(int) {
  static_assert(std::atomic<bool>::is_always_lock_free);
  // Whoever presses twice does not want to wait for what is under way to be put in order.
  if (progress_of_all.stop.exchange(true)) _exit(kExitInterrupted);
}

void prepare_process() {
  keep_freed_memory();
  // A file must never be opened as 0, 1 or 2 because somebody started us with those closed: our
  // messages would end up in it.
  int descriptor = open("/dev/null", O_RDONLY);
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) descriptor = open("/dev/null", O_RDONLY);
  if (descriptor >= 0) close(descriptor);
  struct sigaction action {};
  action.sa_handler = stop_politely;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = SIG_IGN;  // print() sees the EPIPE
  sigaction(SIGPIPE, &action, nullptr);
}

const Command* find_command(std::string_view name) {
  const auto found = std::find_if(kCommands.begin(), kCommands.end(),
                                  [name](const Command* command) { return command->name == name; });
  return found == kCommands.end() ? nullptr : *found;
}

const Command& command_named(std::string_view word) {
  if (const Command* command = find_command(word)) return *command;
  const bool option = word.starts_with('-');
  std::vector<std::string_view> names;
  names = option ? std::vector<std::string_view>{"--help", "--version"}
                 : std::vector<std::string_view>{"help"};
  for (const Command* command : kCommands) {
    if (!option) names.push_back(command->name);
  }
  throw Error(ErrorKind::usage,
              fmt::format("unknown {} '{}'{} (stoker --help lists them)",
                          option ? "option" : "command", printable(word), suggestion(word, names)));
}

std::string main_help() {
  std::string text =
      "stoker keeps training fed: datasets as a few big files, with random access and "
      "checksums.\n\n"
      "usage: stoker COMMAND ARGUMENTS\n\n";
  for (const Command* command : kCommands) {
    text += fmt::format("  stoker {:<8}  {}\n", command->name, command->summary);
  }
  text +=
      "\n  stoker help COMMAND  what a command takes, with examples; also stoker COMMAND --help\n"
      "  stoker --version     which version this is\n\n"
      "examples:\n"
      "  stoker pack photos packed             a million files become a hundred shards\n"
      "  stoker check packed                   what is in it, and is every byte right?\n"
      "  stoker check packed --compare photos  is everything there?\n"
      "  stoker time -- python train.py        how fast is it, and what does it wait for?\n";
  return text;
}

std::string command_help(const Command& command) {
  const bool runs_another =
      !command.positionals.empty() && command.positionals.back() == kCommandWords;
  const std::string usage =
      fmt::format("usage: stoker {} {}{}{}", command.name, runs_another ? "[OPTIONS] [--] " : "",
                  fmt::join(command.positionals, " "), runs_another ? "" : " [OPTIONS]");
  return fmt::format(
      "{}\n\n{}\noptions:\n{}\nexamples:\n{}\n"
      "exit status: 0 done, 1 failed or something is wrong, 2 wrong use, 130 interrupted\n",
      usage, command.description, describe_options(command.options), command.examples);
}

int run_command(const Command& command, std::span<const std::string> words) {
  const Arguments arguments = [&] {
    try {
      return Arguments(command.positionals, command.options, words);
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("{} (stoker {} --help)", error.what(), command.name));
    }
  }();
  if (arguments.asks_help()) {
    print(command_help(command));
    return kExitDone;
  }
  return command.run(arguments, progress_of_all);
}

int run(std::span<const std::string> words) {
  if (words.empty()) {
    print_error(main_help());
    return kExitUsage;
  }
  const std::string& word = words[0];
  if (word == "--version") {
    print(fmt::format("stoker {}\n", STOKER_VERSION));
    return kExitDone;
  }
  if (word == "--help" || word == "-h" || word == "help") {
    print(word == "help" && words.size() > 1 ? command_help(command_named(words[1])) : main_help());
    return kExitDone;
  }
  return run_command(command_named(word), words.subspan(1));
}

// Says what went wrong on stderr, and on stdout as well where a program reads it.
int fail(std::span<const std::string> words, ErrorKind kind, std::string message) {
  const Command* command = words.empty() ? nullptr : find_command(words[0]);
  if (kind == ErrorKind::interrupted) {
    message = command != nullptr && command->resumable
                  ? "interrupted; run the same command again to go on"
                  : "interrupted";
  }
  print_error(fmt::format("stoker: {}\n", message));
  const auto end = std::find(words.begin(), words.end(), "--");
  if (std::find(words.begin(), end, kJsonOption.name) != end) {
    try {
      print(to_text(error_document(command == nullptr ? "" : command->name, kind, message)));
    } catch (const Error&) {  // stdout is what failed
    }
  }
  if (kind == ErrorKind::interrupted) return kExitInterrupted;
  return kind == ErrorKind::usage ? kExitUsage : kExitFailed;
}

}  // namespace
}  // namespace stoker

int main(int count, char** words) {
  const std::vector<std::string> arguments(words + std::min(count, 1), words + count);
  try {
    stoker::prepare_process();
    return stoker::run(arguments);
  } catch (const stoker::Error& error) {
    return stoker::fail(arguments, error.kind(), error.what());
  } catch (const std::bad_alloc&) {
    return stoker::fail(arguments, stoker::ErrorKind::io, "out of memory");
  } catch (const std::exception& error) {
    return stoker::fail(arguments, stoker::ErrorKind::io, error.what());
  }
}
