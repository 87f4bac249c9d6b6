// SPDX-License-Identifier: Apache-2.0
#include "slurm/batch_script.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace stoker {
namespace {

// What partitions, accounts, times and sizes are made of. sbatch has its own rules for quotes,
// spaces and '#' in these lines, and none for line ends.
constexpr std::string_view kPlain =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:@%+=,*[]";

class Header {
 public:
  void add(std::string_view option, std::string_view value) {
    if (value.empty()) return;
    if (value.find_first_not_of(kPlain) != std::string_view::npos) {
      throw Error(ErrorKind::usage, fmt::format("{} '{}': has characters that sbatch does not take",
                                                option, printable(value)));
    }
    text_ += fmt::format("#SBATCH {}={}\n", option, value);
  }
  void add(std::string_view option, uint64_t value) {
    if (value != 0) add(option, fmt::format_int(value).str());
  }
  void add_whole(const std::string& option) {
    if (option.empty() || !option.starts_with("-") ||
        option.find_first_not_of(kPlain) != std::string::npos) {
      throw Error(ErrorKind::usage,
                  fmt::format("'{}': should be one option of sbatch, as in --constraint=a100",
                              printable(option)));
    }
    text_ += fmt::format("#SBATCH {}\n", option);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

std::string shell_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_quoted(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    const bool plain = !word.empty() && word.find_first_not_of(kPlain) == std::string::npos &&
                       word.find_first_of("*[]") == std::string::npos;
    line += (line.empty() ? "" : " ") + (plain ? word : shell_quoted(word));
  }
  return line;
}

std::string text_of(const BatchScript& script) {
  const JobRequest& request = script.request;
  Header header;
  header.add("--job-name", script.name);
  header.add("--partition", request.partition);
  header.add("--account", request.account);
  header.add("--qos", request.qos);
  header.add("--time", request.time);
  header.add("--mem", request.memory);
  header.add("--gpus", request.gpus);
  header.add("--nodes", request.nodes);
  header.add("--cpus-per-task", request.cpus);
  header.add("--array", script.array);
  for (const std::string& option : script.more) header.add_whole(option);
  // A path may have anything in it, which these lines cannot say: the shell opens the log.
  std::string log = shell_quoted(script.log);
  const std::string number = "'\"$SLURM_JOB_ID\"'";
  // The last one: directories may have a %j in their names.
  if (const size_t at = log.rfind("%j"); at != std::string::npos) log.replace(at, 2, number);
  return fmt::format(
      "#!/bin/bash\n{}#SBATCH --output=/dev/null\nset -euo pipefail\nexec >>{} 2>&1\n{}",
      header.text(), log, script.body);
}

}  // namespace stoker
