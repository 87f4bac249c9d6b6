// SPDX-License-Identifier: Apache-2.0
#include "measure/hook_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/text.h"
#include "os/output_file.h"
#include "os/own_place.h"

namespace stoker {
namespace {

void make_private(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    throw system_error(directory, "cannot create directory", errno);
  }
  // Nobody else could have made it: the directory around it is ours.
  if (::chmod(directory.c_str(), 0700) != 0) {
    throw system_error(directory, "cannot set permissions", errno);
  }
}

bool is_there(const std::string& path, std::string_view contents) {
  try {
    return read_file(path, contents.size()) == contents;
  } catch (const Error&) {
    return false;
  }
}

void write_into(const std::string& directory) {
  make_private(directory);
  for (const auto& [name, contents] : hook_files()) {
    const std::string path = directory + "/" + std::string(name);
    if (!is_there(path, contents)) write_file(path, as_bytes(contents));
  }
}

/// For all runs with the same files: what is in it never changes.
std::string write_for_all_runs() {
  uint32_t sum = 0;
  for (const auto& [name, contents] : hook_files()) sum = crc32c(as_bytes(contents), sum);
  std::string directory =
      fmt::format("{}/hook-{:08x}", own_state_directory(SeenBy::this_node), sum);
  write_into(directory);
  return directory;
}

}  // namespace

std::string write_hook_files(const std::string& run_directory, std::string& note) {
  const std::string why = why_not_ours(run_directory);
  std::string directory;
  if (why.empty()) {
    directory = run_directory + "/hook";
    write_into(directory);
    return directory;
  }
  try {
    directory = write_for_all_runs();
    note = fmt::format(
        "what Python imports to be measured is in {}: another user could replace the "
        "run's directory, because {}",
        printable(directory), why);
  } catch (const Error& error) {
    note = fmt::format(
        "measured without the hook: steps and waiting for data are not measured unless the command "
        "records them itself (stoker.Meter) or --pattern finds them, only what the processes use. "
        "There is no safe directory for what Python would import: {}; {}",
        why, error.what());
  }
  return directory;
}

}  // namespace stoker
