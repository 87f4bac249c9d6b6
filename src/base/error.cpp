// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <cerrno>
#include <system_error>

#include "base/text.h"

namespace stoker {

Error system_error(std::string_view path, std::string_view what, int os_error) {
  ErrorKind kind = ErrorKind::io;
  if (os_error == ENOENT || os_error == ENOTDIR) kind = ErrorKind::not_found;
  if (os_error == EACCES || os_error == EPERM || os_error == EROFS) kind = ErrorKind::permission;
  return {
      kind,
      printable(path) + ": " + std::string(what) + ": " + std::generic_category().message(os_error),
      os_error};
}

}  // namespace stoker
