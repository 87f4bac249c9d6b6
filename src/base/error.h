// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace stoker {

enum class ErrorKind {
  usage,        // the caller asked for something that makes no sense
  not_found,    // a file or key does not exist
  permission,   // the system refused
  corrupt,      // bytes are not what they should be
  io,           // the system failed: no space, I/O error
  unsupported,  // valid, but not something we do
  interrupted,  // the user asked to stop
};

/// What every failure in the library is thrown as. The message names path, offset and cause,
/// and says what to do next where that is known.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, int os_error = 0)
      : std::runtime_error(message), kind_(kind), os_error_(os_error) {}

  ErrorKind kind() const { return kind_; }
  /// The errno behind it, or 0.
  int os_error() const { return os_error_; }

 private:
  ErrorKind kind_;
  int os_error_;
};

/// An Error for a system call that failed on `path`: "path: what: No space left on device".
Error system_error(std::string_view path, std::string_view what, int os_error);

}  // namespace stoker
