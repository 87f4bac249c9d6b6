// SPDX-License-Identifier: Apache-2.0
#include "os/scratch_directory.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>

#include "base/error.h"

namespace stoker {
namespace fs = std::filesystem;

ScratchDirectory::ScratchDirectory() {
  std::string name = (fs::temp_directory_path() / "stoker-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw system_error(name, "cannot create", errno);
  path_ = name;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace stoker
