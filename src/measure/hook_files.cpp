// SPDX-License-Identifier: Apache-2.0
#include "measure/hook_files.h"

#include "base/bytes.h"
#include "os/output_file.h"

namespace stoker {

std::string write_hook_files(const std::string& run_directory) {
  const std::string directory = run_directory + "/hook";
  make_directories(directory);
  for (const auto& [name, contents] : hook_files()) {
    write_file(directory + "/" + std::string(name), as_bytes(contents));
  }
  return directory;
}

}  // namespace stoker
