// SPDX-License-Identifier: Apache-2.0
#include "base/inner_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace stoker {
namespace {

[[noreturn]] void refuse(std::string_view name, std::string_view file, std::string_view why) {
  throw Error(ErrorKind::corrupt,
              fmt::format("{}: names '{}', which would lead out of the dataset ({}): nothing in "
                          "this index can be trusted; run stoker index to make another",
                          printable(file), printable(name), why));
}

}  // namespace

std::string_view unsafe_name(std::string_view path) {
  if (path.empty()) return "name is empty";
  if (path.front() == '/') return "name is absolute";
  if (path.find('\0') != std::string_view::npos) return "name contains a NUL byte";
  for (size_t at = path.find(".."); at != std::string_view::npos; at = path.find("..", at + 1)) {
    const bool begins = at == 0 || path[at - 1] == '/';
    const bool ends = at + 2 == path.size() || path[at + 2] == '/';
    if (begins && ends) return "name contains '..'";
  }
  return {};
}

std::string_view unsafe_path(std::string_view path) {
  if (const std::string_view why = unsafe_name(path); !why.empty()) return why;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    if (end == begin) return "name has an empty component";
    if (path.substr(begin, end - begin) == ".") return "name contains '.' as a component";
    begin = end + 1;
  }
  return {};
}

std::string inner_path(std::string path, std::string_view file) {
  if (const std::string_view why = unsafe_path(path); !why.empty()) refuse(path, file, why);
  return path;
}

std::string inner_name(std::string name, std::string_view file) {
  if (name.find('/') != std::string::npos && unsafe_path(name).empty()) {
    refuse(name, file, "a single name is expected, not a path");
  }
  return inner_path(std::move(name), file);
}

}  // namespace stoker
