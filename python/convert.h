// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "dataset/scan.h"
#include "dataset/schema.h"

namespace stoker::python {

// Keys and names are raw bytes in the library. Python sees them as str: UTF-8, and bytes that are
// not as lone surrogates ("surrogateescape"), so that every name survives the way there and back.

nanobind::str to_str(std::string_view bytes);
nanobind::list to_list(const std::vector<std::string>& texts);
/// From str, or bytes as they are.
std::string to_bytes(nanobind::handle text);

/// From str, bytes or os.PathLike, as Python's own open() takes it; empty from None.
std::string to_path(nanobind::handle path);
nanobind::str from_path(std::string_view path);

/// Bytes of a size such as 512M; throws Error(usage) that names the argument.
uint64_t to_size(std::string_view argument, std::string_view text);

/// What a dict has under this name; throws Error(usage) that names it where it is of another type.
template <typename T>
T get(const nanobind::dict& given, const char* name) {
  try {
    return nanobind::cast<T>(given[name]);
  } catch (const nanobind::cast_error&) {
    throw Error(ErrorKind::usage, std::string(name) +
                                      ": is of another type than it should be, or "
                                      "too large");
  }
}

nanobind::dict to_dict(const Field& field);
/// Fields by name, in the order of the schema.
nanobind::dict to_dict(const Schema& schema);
nanobind::list to_list(const std::vector<Fault>& faults);

}  // namespace stoker::python
