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

/// For all runs with the same files: what is in it never changes.
std::string place_of_all_runs() {
  uint32_t sum = 0;
  for (const auto& [name, contents] : hook_files()) sum = crc32c(as_bytes(contents), sum);
  return fmt::format("{}/hook-{:08x}", own_state_directory(), sum);
}

}  // namespace

std::string write_hook_files(const std::string& run_directory, std::string& note) {
  std::string directory = run_directory + "/hook";
  if (const std::string why = why_not_ours(run_directory); !why.empty()) {
    directory = place_of_all_runs();
    note = fmt::format(
        "what Python imports to be measured is in {}: another user could replace the "
        "run's directory, because {}",
        printable(directory), why);
  }
  make_private(directory);
  for (const auto& [name, contents] : hook_files()) {
    const std::string path = directory + "/" + std::string(name);
    if (!is_there(path, contents)) write_file(path, as_bytes(contents));
  }
  return directory;
}

}  // namespace stoker
