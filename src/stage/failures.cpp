// SPDX-License-Identifier: Apache-2.0
#include "stage/failures.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>

#include "base/text.h"
#include "base/units.h"

namespace stoker {
namespace fs = std::filesystem;

Error no_room(const std::string& place, uint64_t needed, uint64_t room) {
  return {ErrorKind::io,
          fmt::format("{}: {} needed, {} free: choose another place, add --partial to stage "
                      "what fits, or make room (stoker stage --clean)",
                      printable(place), format_bytes(needed), format_bytes(room)),
          ENOSPC};
}

Error no_room_for_folder(const std::string& place, uint64_t needed, uint64_t room) {
  return {ErrorKind::io,
          fmt::format("{}: needs {}, {} free; a folder is staged whole or not at all: choose "
                      "another place, or make room (stoker stage --clean)",
                      printable(place), format_bytes(needed), format_bytes(room)),
          ENOSPC};
}

Error explained(const Error& error, const std::string& place, bool packed) {
  std::string advice;
  if (error.os_error() == ENOSPC || error.os_error() == EDQUOT) {
    advice = fmt::format(
        "{} is full, or your quota there is: what is staged stays; make room (stoker "
        "stage --clean){}, and run again to go on",
        printable(place), packed ? "" : ", or add --partial");
  } else if (std::error_code failed; !fs::is_directory(place, failed)) {
    advice = fmt::format("{} has disappeared; the source is untouched", printable(place));
  }
  return advice.empty()
             ? error
             : Error(error.kind(), fmt::format("{} ({})", error.what(), advice), error.os_error());
}

}  // namespace stoker
